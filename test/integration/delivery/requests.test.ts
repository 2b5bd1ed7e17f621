import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { trialsAt } from '../../support/foul-hooks.ts'
import { expectHarmless, startTrials, type Trial, type Trials } from '../../support/hook-trials.ts'

/** A test of hostile hooks with the real checks, the real sender and a real server. */

let trials: Trials

beforeEach(async () => {
  trials = await startTrials()
})

afterEach(async () => {
  await trials.stop()
})

test('a thousand hooks, fair and foul: what is taken arrives byte for byte, what is refused opens no connection, and no connection slot is lost', async () => {
  const counts = { taken: 0, refused: 0, elsewhere: 0 }
  await fc.assert(
    fc.asyncProperty(trialsAt(trials.port), async (trial) => {
      const report = await trials.run(trial)
      counts[report.kind]++
      expectHarmless(trials, trial, report)
    }),
    { numRuns: 1_000 },
  )
  expect(counts.taken).toBeGreaterThan(200)
  expect(counts.refused).toBeGreaterThan(200)
})

describe('a hook that the catalog refuses opens no connection, even if it gets past the catalog', () => {
  const foul: [name: string, rest: (origin: string) => Partial<Trial>][] = [
    ['a line break in a header', () => ({ headers: [['X-A', 'b\r\nX-B: c']] })],
    ['a character outside of Latin-1 in a header', () => ({ headers: [['X-A', '€']] })],
    ['characters whose low bytes are a line break', () => ({ headers: [['X-A', '\u010d\u010aX-B: c']] })],
    ['a header name with a space', () => ({ headers: [['X A', 'b']] })],
    ['another host', () => ({ headers: [['host', 'internal']] })],
    ['another length', () => ({ headers: [['Content-Length', '0']] })],
    [
      'another framing, spelled for a careless proxy',
      () => ({ headers: [['Transfer_Encoding', 'chunked']] }),
    ],
    ['a signature of its own', () => ({ headers: [['webhook-signature', 'v1,a']] })],
    ['a space in the path', (origin) => ({ url: `${origin}/a b` })],
    ['a second request in the path', (origin) => ({ url: `${origin}/ HTTP/1.1\r\n\r\nGET /` })],
    ['a user and a password', (origin) => ({ url: `${origin.replace('//', '//user:password@')}/` })],
  ]

  test.each(foul)('%s', async (_name, rest) => {
    const trial = { url: `${trials.origin}/`, headers: [], messageId: 'm', ...rest(trials.origin) }
    const report = await trials.run(trial)
    expect(report.kind).toBe('refused')
    expectHarmless(trials, trial, report)
  })
})
