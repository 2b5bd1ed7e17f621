import { expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { replayCalls } from '../../../src/roles/replay-calls.ts'
import type { ReplayDesk } from '../../../src/roles/operations/replay-desk.ts'
import { adminRequest } from '../../support/admin-request.ts'
import { quietLog } from '../../support/emitted-lines.ts'

const silent = quietLog
const preview = adminRequest({ body: { selection: { of: 'dead-letters' } } })
const catalog = () => createCatalog([], [], '')

/** Returns a desk whose counts fail with this error. */
function failing(error: Error): ReplayDesk {
  const fail = async (): Promise<never> => {
    throw error
  }
  const others = {
    tell: fail,
    tokens: fail,
    tellTokens: fail,
    create: fail,
    list: fail,
    show: fail,
    wish: fail,
    audit: fail,
  }
  return { ...others, preview: fail, stop: async () => undefined }
}

test('counts that fail by a fault of Sluice do not count as under way for ever', async () => {
  const fault = new RangeError('out of range')
  const calls = replayCalls(failing(fault), catalog, silent)
  for (let time = 1; time <= 3; time++) await expect(calls.preview_replay(preview)).rejects.toBe(fault)
})

test('counts that fail since Kafka does not answer do not count as under way for ever', async () => {
  const calls = replayCalls(failing(new Error('no broker answers')), catalog, silent)
  for (let time = 1; time <= 3; time++)
    expect(await calls.preview_replay(preview)).toMatchObject({ status: 503 })
})
