import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { RefusalBudgets } from '../../../src/gateway/calls/refusal-budgets.ts'
import { cpuMsOf } from '../../support/cost.ts'
import { trackingOf } from '../../support/tracking.ts'

// A customer sends the worst requests that are known, 20 a second, while another one makes 200 calls a second. A
// gateway does one thing at a time, so what the first one costs is what the calls of the other one wait for.

const seconds = 10
const callsPerS = 200
const hostilePerS = 20
/** A call that waits for longer than this, in milliseconds, is delayed. */
const noticeableMs = 5

const source = { enabled: true, kind: 'events', serverKeys: [], maxPerSecond: undefined } as const
const sources = ['honest', 'hostile'].map((id) => ({ ...source, id, name: id, writeKeys: [`${id}-key`] }))
const call = Buffer.from('{"userId":"u1","event":"Order Completed","properties":{"total":12.5}}')

const bodies: readonly (readonly [what: string, body: Buffer, key: string | undefined])[] = [
  ['write keys', gzipSync(`{${'"writeKey":"a","writeKey":"b",'.repeat(17_000)}"x":1}`), undefined],
  ['backslashes', gzipSync(`{"batch":[${String.raw`"\\",`.repeat(100_000)}1]}`), undefined],
  ['NaN', gzipSync(`{"batch":[${'NaN,'.repeat(127_000)}NaN]}`), 'hostile-key'],
  ['a long text', gzipSync(`{"batch":["${'x'.repeat(500_000)}"]}`), 'hostile-key'],
]

test.each(bodies)(
  'a batch of %s, sent again and again, delays less than a hundredth of the calls of others',
  async (_, body, key) => {
    let passedMs = 0
    const budgets = new RefusalBudgets(() => performance.now() + passedMs)
    const tracking = trackingOf({ sources, ackTimeoutMs: 60_000, bufferBytes: 2 ** 30, budgets })
    const authorization = key === undefined ? undefined : `Bearer ${key}`
    const costMs = (address: string): number =>
      cpuMsOf(() => void tracking.handle('batch', body, authorization, { address, ip: undefined }))
    // The first requests also compile the code.
    for (let at = 0; at < 20; at++) costMs(`198.51.100.${at}`)
    const answers: Promise<{ status: number }>[] = []
    let delayed = 0
    let wholeMs = 0
    for (let at = 0; at < seconds * hostilePerS; at++) {
      const ms = costMs('203.0.113.1')
      wholeMs += ms
      delayed += Math.max(0, ms - noticeableMs) * (callsPerS / 1_000)
      for (let each = 0; each < callsPerS / hostilePerS; each++) {
        const from = { address: `192.0.2.${each}`, ip: undefined }
        answers.push(tracking.handle('track', Buffer.from(call), 'Bearer honest-key', from))
      }
      passedMs += 1_000 / hostilePerS
    }
    expect((await Promise.all(answers)).filter(({ status }) => status !== 200)).toEqual([])
    expect(delayed).toBeLessThan(answers.length / 100)
    // A budget has 100 ms, and 5 ms more each second.
    expect(wholeMs).toBeLessThan(3 * (100 + 5 * seconds))
  },
)
