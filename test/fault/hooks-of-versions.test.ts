import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type EarlierVersion, takeEarlierVersion } from '../support/earlier-version.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { deploy } from '../integration/delivery/deployment.ts'

/**
 * Tests of messages that wait for a retry while their worker is replaced by one of another version. The
 * earlier version knows the hooks in a record's headers by their ids alone.
 */

const lastWithIdsAlone = 'eefc614e9f4ed9ab76405061542fc02a274d072d'
const messages = 20

let earlier: EarlierVersion

beforeAll(async () => {
  earlier = await takeEarlierVersion(lastWithIdsAlone)
})

afterAll(() => earlier?.remove())

test.each([
  ['upgraded', true],
  ['put back', false],
])(
  'when a worker is %s, no message that waits is lost, and a hook that failed for good stays left out',
  async (_, isUpgrade) => {
    let isUp = false
    const server = await startReceiver({
      '/gone': answer(404),
      '/asks': answer(429, { 'retry-after': '3600' }),
      '/recovers': (...request) => answer(isUp ? 200 : 503)(...request),
    })
    onTestFinished(() => server.stop())
    const hooks = ['gone', 'asks', 'recovers'].map((id) => ({ id, url: `${server.origin}/${id}` }))
    const sluice = await deploy({
      destinations: [{ id: 'crm', sources: ['crm'], hooks }],
      variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s', SLUICE_RETRY_LIMIT: '10m' },
      ...(isUpgrade && { program: earlier.program }),
    })
    onTestFinished(() => sluice.stop())

    const ids = Array.from({ length: messages }, (__, nth) => `m-${nth}`)
    await sluice.send(
      'crm',
      ids.map((id) => ({ value: { type: 'track', userId: id, event: 'Ping', messageId: id } })),
    )
    const idsAt = (path: string): string[] =>
      server.requestsTo(path).map(({ body }) => JSON.parse(body.toString()).messageId)
    await until('all have had an attempt', () => new Set(idsAt('/recovers')).size === messages)
    await sluice.worker.terminate()
    await sluice.restart(isUpgrade ? undefined : earlier.program)
    const attempts = server.requestsTo('/recovers').length
    await until('the next worker has tried', () => server.requestsTo('/recovers').length > attempts)
    isUp = true
    await until('all are delivered', async () => {
      const delivered = await sluice.worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
      return delivered === messages
    })
    expect(idsAt('/gone').toSorted()).toEqual(ids.toSorted())
    expect(idsAt('/asks').toSorted()).toEqual(ids.toSorted())
    expect(await sluice.read('dead-letters')).toEqual([])
  },
)
