import { losesDigits } from '../../src/message/json/json-numbers.ts'
import { endOfString } from '../../src/message/json/json-walk.ts'

const mayLose = /\d{16}/

const quote = 0x22
const zero = 0x30
const nine = 0x39

/**
 * Counts the whole numbers of a JSON text that lose digits when they are parsed. These are numbers beyond
 * 2^53 that no double can represent, such as 9007199254740993. If a text has no 16 digits in a row, this
 * function costs nearly nothing. The gateway counts them while it respells a text, so this is another way to
 * the same count.
 */
export function countLostDigits(text: string): number {
  if (!mayLose.test(text)) return 0
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === quote) at = endOfString(text, at) - 1
    else if (isDigit(character)) {
      const end = endOfNumber(text, at)
      const number = text.slice(at, end)
      if (losesDigits(number, Number(number))) count++
      at = end - 1
    }
  }
  return count
}

function endOfNumber(text: string, start: number): number {
  let at = start
  while (isDigit(text.charCodeAt(at)) || '.eE+-'.includes(text.charAt(at))) {
    if (++at === text.length) break
  }
  return at
}

function isDigit(character: number): boolean {
  return character >= zero && character <= nine
}
