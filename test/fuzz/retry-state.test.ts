import { expect, test } from 'vitest'
import { waitOn } from '../../src/pipeline/decision.ts'
import {
  type RetryState,
  decodeRetryState,
  encodeRetryState,
  salvageRetryHeaders,
} from '../../src/retry/retry-state.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { damage, isUnpolluted, timeOf } from '../support/mutation.ts'
import { Random } from '../support/random.ts'

const ladder = { waitsMs: [60_000, 600_000, 3_600_000], thenMs: 600_000, limitMs: 4 * 3_600_000 }
const mostMs = 5
const headersBytes = 64 * 1024
const word = 'abcXYZ019._-'

function id(random: Random): string {
  return `h${Array.from({ length: random.below(random.pick([4, 100])) }, () => word[random.below(word.length)]).join('')}`
}

function state(random: Random): RetryState {
  const count = () =>
    random.pick([
      0,
      1,
      random.below(2 ** 31),
      1_700_000_000_000 + random.below(2 ** 31),
      Number.MAX_SAFE_INTEGER,
    ])
  const list = <T>(item: () => T): T[] => Array.from({ length: random.below(random.pick([1, 6, 126])) }, item)
  return {
    sourceId: id(random),
    destinationId: id(random),
    messageId: random.bytes(random.below(60)).toString('latin1'),
    kind: random.pick(['track', 'delete']),
    nextRung: count(),
    waits: count(),
    attempts: count(),
    firstSeenMs: count(),
    expiresAtMs: count(),
    failedHooks: list(() => id(random)),
    notBeforeMs: new Map(list(() => [id(random), count()] as const)),
    lastOutcome: random.pick(['', 'status 503', 'connection ECONNRESET', '漢'.repeat(random.below(400))]),
    origin: { topic: id(random), partition: count(), offset: count() },
    property: random.oneIn(2) ? undefined : property(random),
    isUncertain: random.oneIn(2),
  }
}

/**
 * Returns a property whose ids have any code units. The longest ids have 1,000 units. JSON may write each
 * unit with six characters.
 */
function property(random: Random): NonNullable<RetryState['property']> {
  const name = () => {
    const unit = () => random.pick([random.below(128), random.below(0x10000), 0xd800, 0x01])
    return String.fromCharCode(...Array.from({ length: 1 + random.below(random.pick([8, 1_000])) }, unit))
  }
  return { userId: name(), spaceId: id(random), property: name(), since: `${random.below(2 ** 31)}/1/2/3` }
}

type Received = NonNullable<Parameters<typeof decodeRetryState>[0]>

const oddities = [
  '',
  '-1',
  '1e3',
  '0x1',
  'NaN',
  '9007199254740992',
  '[]',
  '{}',
  'null',
  '[["a",1]]',
  '["u","s","p"]',
  '["u","s",{"__proto__":1}]',
  '["__proto__"]',
  '//',
  '\u0000',
  '[[',
  '"',
]

function damagedHeaders(random: Random, sound: Record<string, string>): Received {
  const headers: Record<string, Buffer | string | null | (Buffer | string | null)[] | undefined> = {
    ...sound,
  }
  for (let left = 1 + random.below(3); left > 0; left--) {
    const name = random.pick(Object.keys(sound))
    const text = sound[name] ?? ''
    switch (random.below(7)) {
      case 0:
        delete headers[name]
        break
      case 1:
        headers[name] = null
        break
      case 2:
        headers[name] = [random.pick([null, text, Buffer.from(text)]), random.pick(oddities)]
        break
      case 3:
        headers[name] = random.pick(oddities)
        break
      case 4:
        headers[name] = Buffer.alloc(
          random.below(random.pick([2_000, 20_000, 100_000])),
          random.pick([0x39, 0x5b, 0xff, 0x22]),
        )
        break
      case 5:
        headers[random.pick(['__proto__x', 'toString', 'trace', ''])] = random.bytes(8)
        break
      default:
        headers[name] = damage(random, Buffer.from(text), [Buffer.from('[["hook",17000000]]')])
    }
  }
  return headers
}

const known = Object.keys(
  encodeRetryState({
    ...state(new Random(1)),
    failedHooks: ['a'],
    notBeforeMs: new Map([['a', 1]]),
    hookContents: new Map([['a', '0123456789ab']]),
    lastOutcome: 'timeout',
    property: { userId: 'u', spaceId: 's', property: 'p', since: '1' },
    isUncertain: true,
  }),
)

function sizeOf(headers: Record<string, string>): number {
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 10,
    0,
  )
}

test(
  'whatever headers a retried record has, they are read, or refused with their faults named',
  async () => {
    const seen = { ok: 0, refused: 0 }
    await fuzz(({ seed, numRuns }) => {
      const random = new Random(seed)
      for (let run = 0; run < numRuns; run++) {
        const sent = state(random)
        const sound = encodeRetryState(sent)
        expect(sizeOf(sound)).toBeLessThan((headersBytes * 3) / 4)
        const read = decodeRetryState(sound)
        expect(read.ok && encodeRetryState(read.state)).toEqual(sound)

        const headers = damagedHeaders(random, sound)
        const decoded = decodeRetryState(headers)
        expect(timeOf(() => decodeRetryState(headers), mostMs)).toBeLessThanOrEqual(mostMs)
        seen[decoded.ok ? 'ok' : 'refused']++
        if (decoded.ok) {
          const again = encodeRetryState(decoded.state)
          expect(sizeOf(again)).toBeLessThan(headersBytes)
          const second = decodeRetryState(again)
          expect(second.ok && encodeRetryState(second.state)).toEqual(again)
          const goOn = () => waitOn(ladder, decoded.state, ['hook'], 1_700_000_000_000)
          expect(timeOf(goOn, mostMs)).toBeLessThanOrEqual(mostMs)
        } else {
          expect(decoded.detail).toMatch(/^headers: [^\n]+$/)
          expect(decoded.detail.length).toBeLessThan(1_000)
        }
        const kept = salvageRetryHeaders(headers)
        expect(sizeOf(kept)).toBeLessThan(headersBytes)
        for (const name of Object.keys(kept)) expect(known).toContain(name)
      }
      expect(isUnpolluted()).toBe(true)
    })
    process.stdout.write(`retry headers: ${seen.ok} read, ${seen.refused} refused\n`)
    expect(seen.ok).toBeGreaterThan(100)
    expect(seen.refused).toBeGreaterThan(100)
  },
  fuzzTimeoutMs,
)
