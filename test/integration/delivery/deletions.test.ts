import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { produce } from '../../support/kafka.ts'
import { answer, neverAnswer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, deploy } from './deployment.ts'

const secret = 'of the crm'
const sources = ['shop', 'app']

let script: Script = neverAnswer
let crm: Receiver
let sluice: Deployment
let stateFolder: string

beforeAll(async () => {
  stateFolder = mkdtempSync(join(tmpdir(), 'sluice-state-'))
  crm = await startReceiver((...request) => script(...request))
  sluice = await deploy({
    destinations: [{ id: 'crm', sources, hooks: [{ url: crm.origin }], sharedSecret: secret }],
    variables: {
      SLUICE_STATE_FOLDER: stateFolder,
      SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1',
      SLUICE_KAFKA_SESSION_TIMEOUT: '6s',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
    },
  })
})

afterAll(async () => {
  await sluice.stop()
  await crm.stop()
  rmSync(stateFolder, { recursive: true, force: true })
})

const page = readFileSync(new URL('../../../docs/deletions.md', import.meta.url), 'utf8')
const published: unknown = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? '')

/**
 * Drops each message whose `messageId` has come before, as we tell receivers to do. Returns the sources of the
 * other messages. The keys are their `messageId`s.
 */
function takenBySource(): Map<string, string> {
  const seen = new Map<string, string>()
  for (const { body } of crm.requests) {
    const { messageId, context } = JSON.parse(String(body))
    if (!seen.has(messageId)) seen.set(messageId, context.sourceId)
  }
  return seen
}

test('a receiver that drops repeats gets the delete of each source, also when the request is read again and when it is tried again', async () => {
  const request = { requestId: 'gdpr-4711', userId: 'u1', sources, requestedAt: '2026-01-31T12:00:00.000Z' }
  await produce(`${sluice.prefix}deletions`, [{ key: 'u1', value: JSON.stringify(request) }])
  await until('both have come', () => crm.requests.length === 2)
  await sluice.worker.kill()
  let tries = 0
  script = (...args) => answer(++tries <= 2 ? 503 : 200)(...args)
  await sluice.restart()
  await until('both were taken at a later try', () => tries === 4)

  const bySource = takenBySource()
  expect([...bySource.values()].toSorted()).toEqual(['app', 'shop'])
  // Each request is sent after the first read, after the second read and as a retry. Its bytes are the same
  // each time.
  const bodies = crm.requests.map(({ body }) => String(body)).toSorted()
  expect(new Set(bodies).size).toBe(2)
  expect(bodies.filter((body) => body === bodies[0])).toHaveLength(3)
  expect(bodies.map((body) => JSON.parse(body))).toContainEqual(published)
  for (const { body, headers } of crm.requests) {
    expect(headers['x-signature']).toBe(createHmac('sha1', secret).update(body).digest('hex'))
    const { messageId, context, ...rest } = JSON.parse(String(body))
    expect(messageId).toMatch(/^delete-gdpr-4711-[\w-]{12}$/)
    expect(Object.keys(context)).toEqual(['sourceId'])
    expect(rest).toEqual({ type: 'delete', userId: 'u1', timestamp: request.requestedAt })
  }
})
