import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'

// The records of the topic `notices` about automatic pauses. Their keys are JSON lists:
//
// - `["clock", DESTINATION]`: a failure clock, which says since when all URLs of a destination have failed.
//   The decider writes it again from time to time, as long as all URLs fail.
// - `["paused", DESTINATION]`: a pause, written by the decider.
// - `["resumed", DESTINATION]`: the end of the pause. The decider, a command or the admin API writes it. If
//   the decider of a later pause had not yet read this record, the record ends that pause too.

const clockSchema = Type.Object({ sinceMs: Type.Number(), urls: Type.String() })
const pauseSchema = Type.Object({
  sinceMs: Type.Number(),
  atMs: Type.Number(),
  urls: Type.String(),
  lastOutcome: Type.String(),
  readTo: Type.Number(),
  cause: Type.Optional(Type.Literal('gone')),
})
const resumptionSchema = Type.Object({
  atMs: Type.Number(),
  by: Type.String(),
  cause: Type.Union([Type.Literal('asked'), Type.Literal('catalog')]),
})

/**
 * A failure clock. `sinceMs`: the time since which all URLs of a destination have failed, by the clock of the
 * process that decided. `urls`: the digest of the URLs.
 */
export type FailureClock = Readonly<Static<typeof clockSchema>>

/**
 * An automatic pause. `sinceMs`: the time since which all URLs had failed. `urls`: the digest of the URLs.
 * The pause ends when the catalog has other URLs. `readTo`: the offset up to which the process that decided
 * the pause had read the topic. `cause`: `gone` if all hooks of the destination have answered 410. Such a
 * pause ends when one of its hooks isn't gone any more. `undefined`: the URLs have failed for too long.
 */
export type Pause = Readonly<Static<typeof pauseSchema>>

/**
 * The end of an automatic pause. `asked`: a command or a request resumed the destination. `catalog`: the
 * catalog has other URLs for the destination, or turns automatic pauses off for the destination.
 */
export type Resumption = Readonly<Static<typeof resumptionSchema>>

export type PauseRecord =
  | { readonly kind: 'clock'; readonly destinationId: string; readonly content: FailureClock | undefined }
  | { readonly kind: 'paused'; readonly destinationId: string; readonly content: Pause | undefined }
  | { readonly kind: 'resumed'; readonly destinationId: string; readonly content: Resumption | undefined }

/**
 * Encodes a record. If it has no content, it removes the previous record with the same key from the topic.
 */
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

/** Decodes the parsed key and value of a record. Returns `undefined` if the record isn't about a pause. */
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

/** How many milliseconds the clock of the process that decides pauses may be ahead of a broker's clock. */
const clocksDifferMs = 60_000

/**
 * Returns the time of the first messages that may have become dead letters because of a pause. `atMs` is the
 * time when the pause was decided. The result is earlier, because the times of dead letters come from a
 * broker's clock. Both times are in epoch milliseconds.
 */
export function deadFromMs(atMs: number): number {
  return atMs - clocksDifferMs
}
