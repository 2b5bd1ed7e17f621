import { Type } from 'typebox'
import { Compile } from 'typebox/compile'

// An order about what waits is a record of the topic `notices`, with the key `["recall", DESTINATION]` if it
// is to be tried now, and `["drop", DESTINATION]` if it is to be given up. A command or the admin API writes
// it, and each worker reads it. It is worth nothing a few minutes later.

/** An order to try the messages of a destination now that wait on the retry topics after failed tries. */
export type RecallOrder = {
  readonly destinationId: string
  /** The id of the only message to try. `undefined`: all. */
  readonly messageId: string | undefined
}

/** An order to make dead letters of what waits for a destination, and who gave it. */
export type AskedDrop = { readonly destinationId: string; readonly by: string }

/** An order that workers carry out, as they read it. */
export type WorkerOrder =
  | ({ readonly kind: 'recall' } & AskedRecall)
  | ({ readonly kind: 'drop' } & AskedDrop)

/** An order, and who gave it. */
export type AskedRecall = RecallOrder & { readonly by: string }

const orderSchema = Type.Object({ by: Type.String(), messageId: Type.Optional(Type.String()) })
const checkOrder = Compile(orderSchema)

export function encodeRecall({ destinationId, messageId, by }: AskedRecall): {
  readonly key: Buffer
  readonly value: Buffer
} {
  return encoded('recall', destinationId, { by, messageId })
}

export function encodeDrop({ destinationId, by }: AskedDrop): ReturnType<typeof encodeRecall> {
  return encoded('drop', destinationId, { by })
}

function encoded(kind: WorkerOrder['kind'], destinationId: string, content: object) {
  return {
    key: Buffer.from(JSON.stringify([kind, destinationId])),
    value: Buffer.from(JSON.stringify(content)),
  }
}

/** Decodes a record of `notices`. Returns `undefined` if it isn't an order. Never throws. */
export function decodeOrder(key: Buffer, value: Buffer | null): WorkerOrder | undefined {
  const names = parse(key.toString())
  if (!Array.isArray(names) || names.length !== 2 || value === null) return undefined
  const [kind, destinationId]: unknown[] = names
  const content = parse(value.toString())
  if (typeof destinationId !== 'string' || !checkOrder.Check(content)) return undefined
  const { messageId, by } = content
  if (kind === 'recall') return { kind, destinationId, messageId, by }
  return kind === 'drop' ? { kind, destinationId, by } : undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
