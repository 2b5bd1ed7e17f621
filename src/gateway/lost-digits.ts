import { endOfString } from '../message/json-walk.ts'

const mayLose = /\d{16}/
/**
 * The number of digits of the largest double. Numbers with more digits are out of range, so they aren't
 * counted.
 */
const mostDigits = 309

const quote = 0x22
const zero = 0x30
const nine = 0x39

/**
 * Counts the whole numbers of a JSON text that lose digits when they are parsed. These are numbers beyond
 * 2^53 that no double can represent, such as 9007199254740993. If a text has no 16 digits in a row, this
 * function costs nearly nothing.
 */
export function countLostDigits(text: string): number {
  if (!mayLose.test(text)) return 0
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === quote) at = endOfString(text, at) - 1
    else if (isDigit(character)) {
      const end = endOfNumber(text, at)
      if (losesDigits(text.slice(at, end))) count++
      at = end - 1
    }
  }
  return count
}

/** Returns true if a number loses digits when it is parsed. `number` has no sign. */
function losesDigits(number: string): boolean {
  if (number.length < 16 || number.length > mostDigits || !/^\d+$/.test(number)) return false
  return BigInt(number) !== BigInt(Number(number))
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
