import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'

// The record of the topic `notices` about a hook that has answered 410 (Gone). Its key is the JSON list
// `["gone", DESTINATION, HOOK]`. The worker that got the answer writes it, and all workers read it. Until the
// hook is edited, or the destination is resumed (`pause-record.ts`), no worker asks the hook.

const goneSchema = Type.Object({
  content: Type.String(),
  atMs: Type.Number(),
  lastOutcome: Type.String(),
  readTo: Type.Number(),
})
const checkGone = Compile(goneSchema)

/**
 * A hook that is gone. `content`: the content that the hook had (`src/delivery/hook-content.ts`). `readTo`:
 * the offset up to which the worker had read the topic when it got the answer.
 */
export type Gone = Readonly<Static<typeof goneSchema>>

export type GoneRecord = {
  readonly destinationId: string
  readonly hookId: string
  /** `undefined`: the record removes the previous record about the hook. */
  readonly content: Gone | undefined
}

export function encodeGone({ destinationId, hookId, content }: GoneRecord): {
  readonly key: Buffer
  readonly value: Buffer | null
} {
  return {
    key: Buffer.from(JSON.stringify(['gone', destinationId, hookId])),
    value: content === undefined ? null : Buffer.from(JSON.stringify(content)),
  }
}

/**
 * Decodes the parsed key and value of a record. Returns `undefined` if the record isn't about a gone hook.
 */
export function decodeGone(names: readonly unknown[], content: unknown): GoneRecord | undefined {
  const [kind, destinationId, hookId] = names
  if (kind !== 'gone' || typeof destinationId !== 'string' || typeof hookId !== 'string') return undefined
  if (names.length !== 3) return undefined
  return { destinationId, hookId, content: checkGone.Check(content) ? content : undefined }
}
