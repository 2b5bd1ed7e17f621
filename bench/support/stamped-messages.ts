import { idCharacters, idMarker, messageAt, userIdOf } from './messages.ts'

/**
 * Makes messages whose `messageId` contains their number and when they were produced. For example,
 * `00004711-0815-0042-1234-000000000017` is number 17, produced at 4711081500421234 µs of `monotonicUs`.
 */

/**
 * The number of different messages. Only their ids are written again for each use, because making a message
 * would cost as much as producing it.
 */
const templateCount = 1_024
const marker = Buffer.from(idMarker)

type Template = { key: string; value: Buffer; idAt: number }

const templates: Template[] = []

/** Returns the key and the value of a record. */
export function stampedMessage(number: number, atUs: number): { key: string; value: Buffer } {
  const template = templateOf(number % templateCount)
  const value = Buffer.from(template.value)
  const stamp = String(atUs).padStart(20, '0').slice(0, 20)
  const id = `${stamp.slice(0, 8)}-${stamp.slice(8, 12)}-${stamp.slice(12, 16)}-${stamp.slice(16)}-${String(number).padStart(12, '0')}`
  value.write(id, template.idAt, 'latin1')
  return { key: template.key, value }
}

export type Stamp = { readonly number: number; readonly atUs: number }

/** Returns the number and the time in each `messageId` of a body, which may be a batch of messages. */
export function readStamps(body: Buffer): readonly Stamp[] {
  const stamps: Stamp[] = []
  for (let at = body.indexOf(marker); at >= 0; at = body.indexOf(marker, at + marker.length)) {
    const stamp = stampAt(body, at)
    if (stamp !== undefined) stamps.push(stamp)
  }
  return stamps
}

/**
 * Returns the number and the time in the `messageId` of a body. Returns `undefined` for a body without them.
 */
export function readStamp(body: Buffer): Stamp | undefined {
  const at = body.indexOf(marker)
  return at < 0 ? undefined : stampAt(body, at)
}

function stampAt(body: Buffer, at: number): Stamp | undefined {
  const id = body.toString('latin1', at + marker.length, at + marker.length + idCharacters)
  const match = /^(\d{8})-(\d{4})-(\d{4})-(\d{4})-(\d{12})$/.exec(id)
  if (match === null) return undefined
  const [, a = '', b = '', c = '', d = '', number] = match
  return { number: Number(number), atUs: Number(a + b + c + d) }
}

function templateOf(index: number): Template {
  const known = templates[index]
  if (known !== undefined) return known
  const value = messageAt(index)
  const made = { key: userIdOf(index), value, idAt: value.indexOf(marker) + marker.length }
  templates[index] = made
  return made
}
