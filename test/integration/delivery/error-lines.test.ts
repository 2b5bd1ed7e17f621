import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { selfSigned } from '../../support/certificates.ts'
import type { SeenRecord } from '../../support/kafka.ts'
import { answer, neverAnswer, type Receiver, startReceiver } from '../../support/receiver.ts'
import type { LogLine } from '../../support/worker-process.ts'
import { type Deployment, deploy } from './deployment.ts'

const sent = 40
const receivers: Receiver[] = []
let sluice: Deployment
let log: readonly LogLine[]
let deadLetters: readonly SeenRecord[]

beforeAll(async () => {
  const silent = await startReceiver(neverAnswer)
  const strange = await startReceiver(answer(200), { identity: selfSigned({ names: ['127.0.0.1'] }) })
  const failing = await startReceiver(answer(500))
  receivers.push(silent, strange, failing)
  const urls = { silent: silent.origin, strange: strange.origin, failing: failing.origin }
  sluice = await deploy({
    destinations: Object.entries(urls).map(([id, url]) => ({
      id,
      sources: [id],
      hooks: [{ id: 'main', url }],
    })),
    variables: {
      SLUICE_LOG_ATTEMPTS: 'false',
      SLUICE_DELIVERY_TIMEOUT: '5s',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_RETRY_LIMIT: '7500ms',
    },
  })
  for (const id of Object.keys(urls)) await sluice.send(id, messages)
  deadLetters = await sluice.read('dead-letters', 3 * sent)
  ;({ log } = sluice.worker)
  await sluice.worker.terminate()
})

afterAll(async () => {
  await sluice.stop()
  for (const receiver of receivers) await receiver.stop()
})

const messages = Array.from({ length: sent }, (_, nth) => ({
  key: `u${nth}`,
  value: { type: 'track', userId: `u${nth}`, event: 'E', messageId: `m${nth}` },
}))

/** Returns the number of tries of all messages to a destination. */
function triesOf(destination: string): number {
  return deadLetters
    .filter(({ headers }) => String(headers?.['destination-id']) === destination)
    .reduce((sum, { headers }) => sum + Number(headers?.['attempts']), 0)
}

function errorsOf(destination: string): readonly LogLine[] {
  return log.filter((line) => line.level === 'error' && line['destination'] === destination)
}

/** Returns the number of errors that the lines report, including errors that the lines say were left out. */
function countOf(lines: readonly LogLine[]): number {
  return lines.reduce((sum, { leftOut }) => sum + 1 + Number(leftOut ?? 0), 0)
}

function nearest(lines: readonly LogLine[]): number {
  const times = lines.map(({ time }) => Date.parse(String(time)))
  return Math.min(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? NaN)))
}

describe('a worker that logs no attempts', () => {
  test('logs a timeout as a timeout error', () => {
    expect(errorsOf('silent')[0]).toMatchObject({
      msg: 'timeout: no response within 5000 ms',
      hook: 'main',
      messageId: expect.stringMatching(/^m\d+$/),
      attempt: 1,
      outcome: 'timeout',
      verdict: 'retry',
    })
  })

  test('logs a certificate that is not trusted as an error', () => {
    expect(errorsOf('strange')[0]).toMatchObject({
      msg: 'the certificate is not trusted: nothing was sent',
      hook: 'main',
      messageId: expect.stringMatching(/^m\d+$/),
      attempt: 1,
      outcome: 'certificate',
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      verdict: 'final',
    })
  })

  test.each(['silent', 'strange'])('says how many errors of %s had no line of their own', (destination) => {
    const tries = triesOf(destination)
    expect(tries).toBeGreaterThanOrEqual(sent / 2)
    expect(countOf(errorsOf(destination))).toBe(tries)
  })

  test.each(['silent', 'strange'])('writes at most one such line a second for %s', (destination) => {
    // The last line may come early, because it is written before the process ends.
    const paced = errorsOf(destination).slice(0, -1)
    expect(nearest(paced)).toBeGreaterThanOrEqual(990)
  })

  test('logs no other attempt', () => {
    expect(errorsOf('failing')).toEqual([])
    expect(log.filter(({ msg }) => msg === 'attempt')).toEqual([])
  })
})
