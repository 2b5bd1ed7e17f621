import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'

/**
 * The records of the topic `notices` about pauses, whose keys are JSON lists:
 *
 * - `["clock", DESTINATION]`: since when all URLs of a destination have failed. The decider writes it again
 *   from time to time, as long as that is so.
 * - `["paused", DESTINATION]`: a pause, written by the decider.
 * - `["resumed", DESTINATION]`: the end of all pauses that were decided before its writer was heard of. The
 *   decider, a command or the admin API writes it.
 */

const clockSchema = Type.Object({ sinceMs: Type.Number(), urls: Type.String() })
const pauseSchema = Type.Object({
  sinceMs: Type.Number(),
  atMs: Type.Number(),
  urls: Type.String(),
  lastOutcome: Type.String(),
  readTo: Type.Number(),
})
const resumptionSchema = Type.Object({
  atMs: Type.Number(),
  by: Type.String(),
  cause: Type.Union([Type.Literal('asked'), Type.Literal('catalog')]),
})

/**
 * The time since when all URLs of a destination have failed, by the clock of the process that decided.
 * `urls`: the digest of the URLs.
 */
export type FailureClock = Readonly<Static<typeof clockSchema>>

/**
 * A pause. `sinceMs`: when the URLs had begun to fail. `urls`: the digest of the URLs; the pause is about no
 * others. `readTo`: the offset before which its decider had read all records of the topic.
 */
export type Pause = Readonly<Static<typeof pauseSchema>>

/**
 * The end of a pause. `asked`: somebody resumed it. `catalog`: the catalog has other URLs, or wants no pause.
 */
export type Resumption = Readonly<Static<typeof resumptionSchema>>

export type PauseRecord =
  | { readonly kind: 'clock'; readonly destinationId: string; readonly content: FailureClock | undefined }
  | { readonly kind: 'paused'; readonly destinationId: string; readonly content: Pause | undefined }
  | { readonly kind: 'resumed'; readonly destinationId: string; readonly content: Resumption | undefined }

/** Encodes a record. Without content it removes what the topic has. */
export function encodePause({ kind, destinationId, content }: PauseRecord): {
  readonly key: Buffer
  readonly value: Buffer | null
} {
  return {
    key: Buffer.from(JSON.stringify([kind, destinationId])),
    value: content === undefined ? null : Buffer.from(JSON.stringify(content)),
  }
}

const checkClock = Compile(clockSchema)
const checkPause = Compile(pauseSchema)
const checkResumption = Compile(resumptionSchema)

/** Decodes the parsed key and value of a record. Returns `undefined` if it isn't about a pause. */
export function decodePause(names: readonly unknown[], content: unknown): PauseRecord | undefined {
  const [kind, destinationId] = names
  if (typeof destinationId !== 'string' || names.length !== 2) return undefined
  switch (kind) {
    case 'clock':
      return { kind, destinationId, content: checkClock.Check(content) ? content : undefined }
    case 'paused':
      return { kind, destinationId, content: checkPause.Check(content) ? content : undefined }
    case 'resumed':
      return { kind, destinationId, content: checkResumption.Check(content) ? content : undefined }
    default:
      return undefined
  }
}
