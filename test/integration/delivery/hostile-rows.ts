import type { DeadReason } from '../../../src/message/dead-letter-reasons.ts'
import type { RawRecord } from '../../support/raw-batch.ts'

/** A record that no producer should write, and the expected result. */
export type HostileRecord = {
  readonly name: string
  readonly record: RawRecord
  readonly becomes: Delivered | Dead
}

/**
 * The result if the record is delivered. `MADE_ID` in the body stands for the id that is made of topic,
 * partition and offset.
 */
export type Delivered = { readonly body: string; readonly messageId: string }
export type Dead = { readonly reason: DeadReason; readonly omits: readonly ('key' | 'value')[] }

export const sourceId = 'up'
/** The headers of a record whose source is known. */
export const source = [['source-id', sourceId]] as const
/** The timestamp of the messages that `delivered` makes. */
export const time = '2024-01-02T03:04:05.006Z'

let ids = 0
const nextId = () => `hostile-${++ids}`

type Rest = Pick<RawRecord, 'key' | 'headers'>

/**
 * Returns a `page` message with additional fields. `canonical` is the expected text of these fields in the
 * delivered body.
 */
export function delivered(name: string, fields: string, canonical = fields, rest: Rest = {}): HostileRecord {
  const messageId = nextId()
  const head = `"type":"page","userId":"u","messageId":"${messageId}","timestamp":"${time}"`
  const value = `{${head},${fields}}`
  const body = `{"version":1,${head},${canonical},"context":{},"properties":{}}`
  return { name, record: { value, headers: source, ...rest }, becomes: { body, messageId } }
}

/** Returns a message with exactly this text. `ID` in the texts stands for the id of the message. */
export function whole(name: string, value: string | Buffer, body: string, rest: Rest = {}): HostileRecord {
  const messageId = nextId()
  const own = (text: string) => text.replaceAll('"ID"', `"${messageId}"`)
  const bytes = typeof value === 'string' ? own(value) : value
  return { name, record: { value: bytes, headers: source, ...rest }, becomes: { body: own(body), messageId } }
}

/** Returns a plain `page` message that is delivered normally. Only its key or its headers are hostile. */
export function around(name: string, rest: Rest): HostileRecord {
  return delivered(name, '"n":1', '"n":1', rest)
}

/** Returns a message that becomes a dead letter. `omits` names the parts that the dead letter lacks. */
export function dead(
  reason: DeadReason,
  name: string,
  value: string | Buffer | null,
  rest: Rest & { omits?: Dead['omits'] } = {},
): HostileRecord {
  const { omits = [], ...record } = rest
  return { name, record: { value, headers: source, ...record }, becomes: { reason, omits } }
}
