import { endOfString } from '../../src/message/json/json-walk.ts'

/**
 * The text of a batch in which NaN, Infinity and -Infinity were replaced by null, with the indexes (from 0)
 * of the messages that contained such values.
 */
export type Replaced = { readonly text: string; readonly items: ReadonlySet<number> }

const quote = 0x22
const comma = 0x2c
const minus = 0x2d
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
const firstOfNaN = 0x4e
const firstOfInfinity = 0x49

/** The words that Python's json.dumps writes for floats that JSON can't express. Longer words come first. */
const words = ['-Infinity', 'Infinity', 'NaN']

/**
 * In the messages of a batch, replaces each value NaN, Infinity and -Infinity by null, and returns which
 * messages had such a value. If there is no such value, or if such a value is outside of the messages,
 * returns `undefined`. The resulting text may still be invalid JSON. Reads each character once. Call this
 * function only for texts that JSON.parse has refused.
 */
export function replaceNonNumbers(text: string): Replaced | undefined {
  const items = new Set<number>()
  let mended = ''
  let copied = 0
  let depth = 0
  let lastString = ''
  /** The index of the message that is being read; -1 outside of the batch. */
  let item = -1
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = endOfString(text, at)
        if (depth === 1) lastString = text.slice(at, Math.min(end, at + 8))
        at = end - 1
        break
      }
      case openBracket:
      case openBrace:
        depth++
        if (depth === 2 && lastString === '"batch"' && text.charCodeAt(at) === openBracket) {
          // If the field `batch` occurs twice, JSON.parse uses the last one.
          items.clear()
          item = 0
        }
        break
      case closeBracket:
      case closeBrace:
        depth--
        if (depth === 1) item = -1
        break
      case comma:
        if (depth === 2 && item !== -1) item++
        break
      case minus:
      case firstOfNaN:
      case firstOfInfinity: {
        const word = words.find((one) => text.startsWith(one, at))
        if (word === undefined) break
        if (item === -1) return undefined
        items.add(item)
        mended += `${text.slice(copied, at)}null`
        copied = at + word.length
        at = copied - 1
        break
      }
      default:
    }
  }
  return items.size === 0 ? undefined : { text: mended + text.slice(copied), items }
}
