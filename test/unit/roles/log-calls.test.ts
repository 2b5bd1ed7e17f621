import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { LogQuery } from '../../../src/delivery-log/log-query.ts'
import { logCalls } from '../../../src/roles/log-calls.ts'
import { adminRequest } from '../../support/admin-request.ts'
import { readJson } from '../../support/post.ts'

/** Returns a query that fails with this error at every call. */
function failing(error: Error): LogQuery {
  const fail = async (): Promise<never> => {
    throw error
  }
  const asks = { find: fail, search: fail, counts: fail, percentiles: fail, groups: fail, status: fail }
  return { ...asks, close: async () => {} }
}

const unanswered = {
  tell: async (): Promise<never> => {
    throw new Error('Kafka does not answer')
  },
}

const catalog = () => createCatalog([], [], '')

function askedOf(query: LogQuery) {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error('the default settings are refused')
  const warnings: string[] = []
  const log = pino({}, { write: (line) => void warnings.push(String(readJson(line)['msg'])) })
  const { calls } = logCalls({ config: read.config, log, query, catalog, desk: unanswered })
  return {
    answer: calls.show_log(adminRequest()),
    warnings,
  }
}

test('an index that can not be read is said to be unavailable', async () => {
  const { answer, warnings } = askedOf(failing(new Error('disk I/O error')))
  expect(await answer).toMatchObject({ status: 503, body: { detail: 'disk I/O error' } })
  expect(warnings).toEqual(['the delivery log can not be queried'])
})

test.each([
  new TypeError("Cannot read properties of undefined (reading 'rows')"),
  new RangeError('Invalid array length'),
])('a fault of Sluice is not told as an index that is unavailable: %s', async (error) => {
  const { answer, warnings } = askedOf(failing(error))
  await expect(answer).rejects.toBe(error)
  expect(warnings).toEqual([])
})

test('a server that does not answer is no fault of Sluice', async () => {
  const unreached = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
  expect(await askedOf(failing(unreached)).answer).toMatchObject({ status: 503 })
})

test('a search by user that can not be written into the audit trail is not done', async () => {
  const read = readConfig({ env: { SLUICE_ATTEMPTS_USER_KEY: 'a key of sixteen or more' } })
  if (!read.ok) throw new Error(read.message)
  const log = pino({ level: 'silent' })
  const { calls } = logCalls({
    config: read.config,
    log,
    catalog,
    query: failing(new Error('asked')),
    desk: unanswered,
  })
  const asked = adminRequest({ body: { user: 'user-1' } })
  for (const call of [calls.search_log, calls.count_log])
    expect(await call(asked)).toMatchObject({
      status: 503,
      body: { detail: expect.stringContaining('audit trail') },
    })
})
