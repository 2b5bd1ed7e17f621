import { KeptAnswer } from '../../src/delivery/send/kept-answer.ts'
import { secretsOf } from '../../src/secrets/secret-texts.ts'
import { cpuMsOf, leastOf } from '../../test/support/cost.ts'
import { round } from '../support/statistics.ts'

const secretBytes = 8 * 1024
const answerBytes = 10 * 1024
/** How much of an answer a worker keeps, in bytes. */
const keptBytes = 2 * 1024

/** A round takes some 30 ms, because the system counts CPU time in steps of a few milliseconds. */
const timesInRound = 100

/** Headers of a request that change with each message. */
const headers = ['X-Signature', '0123456789abcdef0123456789abcdef01234567']

type Case = {
  readonly name: string
  /** The value of the hook's only header. */
  readonly header: string
  readonly answer: string
  readonly userId?: string
}

/** Returns a text of at most `bytes` characters that repeats `part`. */
function filled(part: string, bytes: number): string {
  return part.repeat(Math.floor(bytes / part.length))
}

/** Returns as many different tokens as fit, with a space between them. All begin alike. */
function tokensThatBeginAlike(): string {
  const signs = 'abcdefghijklmnopqrstuvwxyz0123456789'
  const tokens = Array.from({ length: signs.length ** 2 }, (_, at) => {
    const second = signs[at % signs.length] ?? ''
    return `a1aaaa${signs[Math.floor(at / signs.length)] ?? ''}${second}`
  })
  return tokens.join(' ').slice(0, secretBytes)
}

/** Returns the beginning of the Fibonacci word, which nearly repeats itself at all lengths. */
function fibonacciWord(bytes: number): string {
  let [shorter, longer] = ['a', 'ab']
  while (longer.length < bytes) [shorter, longer] = [longer, longer + shorter]
  return longer.slice(0, bytes)
}

/** The worst known requests and answers. Most have an escape, so the answer is searched twice. */
function cases(): Case[] {
  const half = secretBytes / 2 - 8
  const nearly = `Bearer ${filled('a', half)}b ${filled('a', half)}`
  const escapedOnce = `${filled('a', answerBytes / 2)}%61${filled('a', answerBytes / 2)}`
  const alike = tokensThatBeginAlike()
  return [
    { name: 'one letter', header: nearly, answer: filled('a', answerBytes) },
    { name: 'one letter, escaped once', header: nearly, answer: escapedOnce },
    {
      name: 'one letter, and a long user id',
      header: nearly,
      answer: escapedOnce,
      userId: filled('a', 1_000),
    },
    { name: 'an end that differs', header: `${filled('a', secretBytes - 1)}b`, answer: escapedOnce },
    {
      name: 'a Fibonacci word',
      header: fibonacciWord(secretBytes),
      answer: `${fibonacciWord(8_000)}%63${fibonacciWord(2_000)}`,
    },
    { name: 'tokens that begin alike', header: alike, answer: filled('a1aaaa%61a', answerBytes) },
    { name: 'tokens repeated', header: alike, answer: `${alike}%20${alike}`.slice(0, answerBytes) },
    ...['%61', '%', '&a', '&aa;', '&#', '&#1', '&amp;', '\\', String.raw`\u0061`].map((escape) => ({
      name: `only ${escape}`,
      header: `${filled(escape, secretBytes - 1)}b`,
      answer: filled(escape, answerBytes),
    })),
    ...['aaaaaa', 'é', 'x1y2z3w4 '].map((part) => ({
      name: `only ${part}`,
      header: `${filled(part, secretBytes - 1)}b`,
      answer: `${filled(part, answerBytes - 3)}%61`,
    })),
  ]
}

/**
 * Measures the CPU time, in milliseconds, that it takes to mask an answer of 10 KiB with 8 KiB of secrets.
 * `worst_mask_ms` is the time of the worst known request and answer. The time of each is the least of
 * `rounds`. What is computed once for each hook isn't a part of it.
 */
export function measureMasks({ rounds = 5 }: { rounds?: number } = {}): {
  worst_mask_ms: number
  masks: { name: string; cpu_ms: number }[]
} {
  const masks = cases().map((one) => ({ name: one.name, cpu_ms: round(leastCpuMs(one, rounds), 3) }))
  return { worst_mask_ms: Math.max(...masks.map(({ cpu_ms: cpuMs }) => cpuMs)), masks }
}

function leastCpuMs({ header, answer, userId }: Case, rounds: number): number {
  const ofHook = secretsOf([header], '/in')
  const ofRequest = { headers, userId: userId === undefined ? null : Buffer.from(userId) }
  const body = Buffer.from(answer).subarray(0, answerBytes)
  const maskOften = (): void => {
    for (let time = 0; time < timesInRound; time++) {
      const kept = new KeptAnswer(keptBytes, ofHook, ofRequest)
      kept.begin({ kind: 'answer', status: 500 }, undefined)
      kept.take(body)
      kept.outcome()
    }
  }
  return leastOf(0, () => cpuMsOf(maskOften), rounds) / timesInRound
}
