import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { createAudienceCustomer } from '../support/audience-customer.ts'
import { AudienceFleet, openAudienceUpstream, tellOf } from '../support/audience-fleet.ts'
import { Random } from '../support/random.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { createTrust, type Trust } from '../support/trust.ts'
import { until } from '../support/until.ts'

/** The time in seconds during which the test causes faults. After this time, it causes none. */
const seconds = Number(process.env['SLUICE_TEST_AUDIENCE_SECONDS'] ?? 70)
/**
 * The seed of the changes, the faults and the kills. The same seed makes the same choices, though not at the
 * same moments.
 */
const seed = Number(process.env['SLUICE_TEST_AUDIENCE_SEED'] ?? 1)

const partitions = 6
const workers = 3
const timeoutMs = 500
const rungMs = 2_000

test('while workers are killed and their customer fails, times out and acts late, it ends with the last value of every user, and of those deleted is sent nothing older', async () => {
  const customer = createAudienceCustomer({ random: new Random(seed) })
  const trust = createTrust('https')
  const receiver = await startReceiver(customer.script, trust.secured)
  const scene = await setAudienceScene(receiver, trust)
  const folders = Array.from({ length: workers }, () => mkdtempSync(join(tmpdir(), 'sluice-state-')))
  const fleet = new AudienceFleet(scene, folders)
  const upstream = await openAudienceUpstream({
    prefix: scene.prefix,
    customer,
    partitions: () => partitions,
    random: new Random(seed + 1),
  })
  try {
    await fleet.startAll()
    const untilMs = performance.now() + seconds * 1_000
    await Promise.all([upstream.play(untilMs), fleet.playKills(new Random(seed + 2), untilMs)])
    customer.recover()
    await until('nothing waits', async () => (await scene.lag()) === 0, { timeoutMs: 90_000, everyMs: 500 })
    process.stdout.write(
      `seed ${seed}: ${upstream.written} changes, ${upstream.syncs} syncs, ${upstream.deletions} deletions, ${fleet.killed.length} kills; ` +
        `${receiver.requests.length} requests, ${customer.late} of them applied late\n`,
    )
    const wrong = upstream.wrongAt(customer)
    tellOf(
      [...wrong.map(({ user }) => user), ...customer.sentTooLate, ...customer.heldTooLong()],
      customer,
      fleet,
    )
    expect(wrong).toEqual([])
    expect(customer.sentTooLate).toEqual([])
    expect(customer.heldTooLong()).toEqual([])
    expect(upstream.deletions).toBeGreaterThan(0)
    expect(fleet.killed.length).toBeGreaterThan(0)
    expect(customer.late).toBeGreaterThan(0)
  } finally {
    await fleet.killAll()
    await upstream.close()
    scene.close()
    await receiver.stop()
    trust.remove()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
})

function setAudienceScene(receiver: Receiver, trust: Trust): Promise<Scene> {
  return setScene({
    catalog: {
      sources: [{ id: 'space', kind: 'audiences' }],
      destinations: [{ id: 'crm', sources: ['space'], hooks: [{ url: `${receiver.origin}/crm` }] }],
    },
    variables: {
      ...unhurried,
      ...trust.variables,
      SLUICE_DELIVERY_TIMEOUT: `${timeoutMs}ms`,
      SLUICE_RETRY_LADDER: `${rungMs / 1_000}s`,
      SLUICE_RETRY_THEN: `${rungMs / 1_000}s`,
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
}
