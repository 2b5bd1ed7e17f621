import { Type } from 'typebox'
import { Compile } from 'typebox/compile'

// An order to call back is a record of the topic `notices` with the key `["recall", DESTINATION]`. A command
// or the admin API writes it, and each worker reads it. It is worth nothing a few minutes later.

/** An order to try the messages of a destination now that wait on the retry topics after failed tries. */
export type RecallOrder = {
  readonly destinationId: string
  /** The id of the only message to try. `undefined`: all. */
  readonly messageId: string | undefined
}

/** An order, and who gave it. */
export type AskedRecall = RecallOrder & { readonly by: string }

const orderSchema = Type.Object({ by: Type.String(), messageId: Type.Optional(Type.String()) })
const checkOrder = Compile(orderSchema)

export function encodeRecall({ destinationId, messageId, by }: AskedRecall): {
  readonly key: Buffer
  readonly value: Buffer
} {
  return {
    key: Buffer.from(JSON.stringify([kind, destinationId])),
    value: Buffer.from(JSON.stringify({ by, messageId })),
  }
}

/** Decodes a record of `notices`. Returns `undefined` if it isn't an order to call back. Never throws. */
export function decodeRecall(key: Buffer, value: Buffer | null): AskedRecall | undefined {
  const names = parse(key.toString())
  if (!Array.isArray(names) || names.length !== 2 || value === null) return undefined
  const [what, destinationId]: unknown[] = names
  const content = parse(value.toString())
  if (what !== kind || typeof destinationId !== 'string' || !checkOrder.Check(content)) return undefined
  return { destinationId, messageId: content.messageId, by: content.by }
}

const kind = 'recall'

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
