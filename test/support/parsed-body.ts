import { isUtf8 } from 'node:buffer'
import { type BodyFault, isJsonObject } from '../../src/gateway/messages/body.ts'
import { checkItem } from '../../src/gateway/messages/item.ts'
import type { ScannedBody } from '../../src/gateway/messages/scan-body.ts'
import { parseJson } from '../../src/message/json/json.ts'
import { RawObject } from '../../src/message/message-outline.ts'
import { countLostDigits } from './lost-digits.ts'
import { replaceNonNumbers } from './non-numbers.ts'

const none: ReadonlySet<number> = new Set()

/**
 * Reads a body by parsing it as a whole. The gateway makes no values of messages, so this is another way to
 * what it has to find in a body.
 */
export function parsedBody(
  bytes: Buffer,
  isBatch: boolean,
): ScannedBody | { readonly ok: false; readonly fault: BodyFault } {
  if (!isUtf8(bytes)) return { ok: false, fault: 'not_utf8' }
  const text = bytes.toString().replace(/^\ufeff/, '')
  const whole = parseJson(text)
  const mended = whole.ok || !isBatch ? undefined : replaceNonNumbers(text)
  const parsed = mended === undefined ? whole : parseJson(mended.text)
  if (!parsed.ok) return { ok: false, fault: 'not_json' }
  const { value: body } = parsed
  if (!isJsonObject(body)) return { ok: false, fault: 'not_an_object' }
  const list = isBatch ? body['batch'] : [body]
  const values: readonly unknown[] = Array.isArray(list) ? list : []
  const spoiled = mended?.items ?? none
  return {
    ok: true,
    body: { ...body, context: withText(body['context']), integrations: withText(body['integrations']) },
    items: {
      length: values.length,
      outlined: values.length,
      check: (index, surroundings) =>
        spoiled.has(index) ? { ok: false, reason: 'not_json' } : checkItem(values[index], surroundings),
      outlineAt(index) {
        const value = values[index]
        return isJsonObject(value) ? value : undefined
      },
    },
    lostDigits: countLostDigits(text),
  }
}

/** Returns an object as its text, which is what the gateway keeps of it. Other values stay as they are. */
function withText(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  const text = JSON.stringify(value, (_key, member: unknown) => {
    return member === Infinity || member === -Infinity ? `infinite ${String(member)}` : member
  })
  return new RawObject(text.replaceAll(/"infinite (-?)Infinity"/g, (_, sign) => `${sign}1e999`))
}
