import assert from 'node:assert/strict'
import { expect, test } from 'vitest'
import { parseRetryAfter } from '../../src/http/retry-after.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { damage, shortest, timeOf } from '../support/mutation.ts'
import { Random } from '../support/random.ts'

const yearMs = 365 * 24 * 3_600_000
const latest = Date.UTC(9999, 11, 31)
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const two = (value: number) => String(value).padStart(2, '0')

/**
 * Returns a date in one of the three forms of RFC 9110, and the time that it means. Years of two digits are
 * in this century.
 */
function date(random: Random): { text: string; atMs: number } {
  const atMs =
    Date.UTC(1970 + random.below(200), random.below(12), 1 + random.below(28)) + random.below(86_400) * 1_000
  const text = new Date(atMs).toUTCString()
  const at = new Date(atMs)
  const [, dayOfMonth = '', month = '', year = '', time = ''] = text.split(' ')
  const day = days[at.getUTCDay()] ?? ''
  switch (random.below(3)) {
    case 0:
      return { text, atMs }
    case 1:
      return at.getUTCFullYear() >= 2000 && at.getUTCFullYear() < 2050
        ? { text: `${day}, ${dayOfMonth}-${month}-${two(at.getUTCFullYear() % 100)} ${time} GMT`, atMs }
        : { text, atMs }
    default:
      return {
        text: `${day.slice(0, 3)} ${month} ${String(at.getUTCDate()).padStart(2)} ${time} ${year}`,
        atMs,
      }
  }
}

const pieces = [
  'Sun, ',
  '06',
  ' ',
  'Nov',
  '-',
  '1994',
  '94',
  ' 08:49:37',
  ' GMT',
  '+0100',
  '9',
  '0',
  '.',
  'e5',
  '\t',
  ',',
  '٣',
  '\u00a0',
]

function anything(random: Random): string {
  switch (random.below(5)) {
    case 0:
      return Array.from({ length: random.below(9) }, () => random.pick(pieces)).join('')
    case 1:
      return random.bytes(random.below(30)).toString('latin1')
    case 2:
      return random.pick(['9', ' ', '0', '1,', 'Sun', '\t']).repeat(random.below(20_000))
    case 3:
      return String(random.below(2 ** 31))
    default:
      return damage(random, Buffer.from(date(random).text), [Buffer.from('120')]).toString('latin1')
  }
}

/**
 * Checks the wait for one value. Uses the assertions of Node, because those of the test runner would take
 * most of the time.
 */
function check(value: string, nowMs: number): void {
  const waitMs = parseRetryAfter(value, nowMs)
  if (waitMs !== undefined) {
    assert.ok(Number.isSafeInteger(waitMs) && waitMs >= 0 && waitMs <= yearMs)
    // Only digits and dates may give a wait.
    assert.match(value.trim(), /^(\d+|[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d.*)$/)
  }
  if (/^\d+$/.test(value)) assert.equal(waitMs, Math.min(Number(value) * 1_000, yearMs))
  const mostMs = 1 + value.length / 10_000
  assert.ok(timeOf(() => parseRetryAfter(value, nowMs), mostMs) <= mostMs, 'it takes too long')
}

function fails(value: Buffer, nowMs: number): boolean {
  try {
    check(value.toString('latin1'), nowMs)
    return false
  } catch {
    return true
  }
}

test(
  'whatever Retry-After says, it is a wait from nothing to a year, or nothing is said',
  async () => {
    let failed = ''
    let count = 0
    await fuzz(({ seed, numRuns }) => {
      const random = new Random(seed)
      for (let run = 0; run < numRuns; run++) {
        const nowMs = random.below(latest / 1_000) * 1_000 + random.below(1_000)
        const known = date(random)
        assert.equal(
          parseRetryAfter(known.text, nowMs),
          Math.min(Math.max(0, known.atMs - nowMs), yearMs),
          known.text,
        )
        const bytes = Buffer.from(anything(random), 'latin1')
        if (fails(bytes, nowMs)) {
          failed = shortest(bytes, (candidate) => fails(candidate, nowMs)).toString('latin1')
          check(failed, nowMs)
        }
        count++
      }
    })
    process.stdout.write(`Retry-After: ${count} values\n`)
    expect(failed).toBe('')
  },
  fuzzTimeoutMs,
)
