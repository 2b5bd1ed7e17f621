import { magicByte } from '../../schema-registry/frame.ts'
import type { Decoder } from '../../schema-registry/decoder.ts'
import { within } from '../../async/within.ts'

/** The payload of a record. If the payload isn't shown, `note` says why. */
export type ReadPayload = { readonly payload: string | undefined; readonly note: string | undefined }

export type PayloadOptions = {
  /** The message that the record should contain. `undefined`: it may contain any. */
  readonly messageId: string | undefined
  /** True if values of the topic may be framed: they begin with a schema id of a registry. */
  readonly isFramed: boolean
  readonly decoder: Pick<Decoder, 'decode'>
  readonly withinMs: number
  /** Returns why the registry gives no schema. Returns an empty text if this isn't known. */
  readonly registryTrouble?: () => string
}

/**
 * Reads the value of the record that brought a message. If the value is framed, decodes it with the schema
 * registry. A topic that was deleted and created again has other messages at the same offsets, so a record
 * with another `messageId` isn't shown.
 */
export async function readPayload(value: Buffer | null, options: PayloadOptions): Promise<ReadPayload> {
  const { messageId, isFramed, decoder, withinMs, registryTrouble = () => '' } = options
  let plain = value ?? Buffer.alloc(0)
  if (isFramed && plain[0] === magicByte) {
    const decoded = await decodeWithin(decoder, plain, withinMs)
    if (decoded === undefined) {
      const why = registryTrouble() === '' ? '' : `: ${registryTrouble()}`
      return unread(
        `it is framed for a schema registry, which gave no schema within ${withinMs / 1_000} s${why}`,
      )
    }
    if (!decoded.ok) return unread(`it is framed, and can not be read: ${decoded.detail}`)
    plain = decoded.value
  }
  const payload = plain.toString('utf8')
  const found = messageId === undefined ? undefined : messageIdIn(payload)
  if (found === undefined || found === messageId) return { payload, note: undefined }
  return unread('another message is in its place: the topic was recreated, or its partition truncated')
}

function unread(note: string): ReadPayload {
  return { payload: undefined, note }
}

/** Decodes a framed value. Resolves to `undefined` if the registry gives no schema in this time. */
export async function decodeWithin(decoder: Pick<Decoder, 'decode'>, value: Buffer, withinMs: number) {
  const untilMs = performance.now() + withinMs
  for (;;) {
    const decoded = decoder.decode(value)
    if (!(decoded instanceof Promise)) return decoded
    if (!(await within(Math.max(0, untilMs - performance.now()), decoded))) return undefined
  }
}

/**
 * Returns the `messageId` of a payload. Returns `undefined` if the payload has none. In this case, Sluice has
 * made the id.
 */
function messageIdIn(payload: string): string | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(payload)
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined
  const found: unknown = Reflect.get(parsed, 'messageId')
  return typeof found === 'string' && found !== '' ? found : undefined
}
