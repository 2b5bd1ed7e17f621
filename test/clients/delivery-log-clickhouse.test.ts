import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ClickHouse, connectClickHouse } from '../../src/delivery-log/clickhouse/connect-clickhouse.ts'
import { startClickHouseIndexing } from '../../src/delivery-log/clickhouse/start-indexing.ts'
import { openClickHouseQuery } from '../../src/delivery-log/clickhouse/clickhouse-query.ts'
import { ddl, quoted, type Tables, tablesOf } from '../../src/delivery-log/clickhouse/tables.ts'
import { accessOf, startClickHouse, type TestClickHouse } from '../support/clickhouse.ts'
import { dayMs, testLogStore } from '../support/log-contract.ts'
import { quietLog } from '../support/emitted-lines.ts'

/**
 * Tests of the delivery log in ClickHouse. They test the behaviour of all stores, and the behaviour of this
 * store alone.
 */

let server: TestClickHouse
let clickHouse: ClickHouse
const database = `sluice_test_${randomBytes(6).toString('hex')}`
let made = 0

beforeAll(async () => {
  server = await startClickHouse()
  clickHouse = connectClickHouse(accessOf(server))
})

afterAll(async () => {
  await run(`DROP DATABASE IF EXISTS ${database}`)
  await clickHouse.close()
  await server.stop()
})

async function run(sql: string): Promise<void> {
  await clickHouse.run({ sql, params: {} })
}

async function makeTables(keptMs = 30 * dayMs): Promise<Tables> {
  const tables = tablesOf(database, `t${++made}.attempts`)
  for (const sql of ddl(tables, keptMs)) await run(sql)
  return tables
}

async function dropTables(tables: Tables): Promise<void> {
  for (const name of [tables.keysView, tables.keys, tables.positions, tables.attempts])
    await run(`DROP TABLE ${quoted(tables, name)} SYNC`)
}

const log = quietLog

testLogStore(async () => {
  const tables = await makeTables()
  const query = openClickHouseQuery({ clickHouse, tables, behindMs: () => -1 })
  return {
    async index(blocks, { perCommit = 30, isLost = false } = {}) {
      if (isLost) await run(`TRUNCATE TABLE ${quoted(tables, tables.positions)}`)
      for (let at = 0; at < blocks.length; at += perCommit) {
        const indexing = await startClickHouseIndexing({
          clickHouse,
          tables,
          keptMs: 30 * dayMs,
          log,
          onIndexed: () => undefined,
          onTaken: () => undefined,
        })
        const some = blocks.slice(at, at + perCommit)
        indexing.add(
          some.filter(({ partition, offset }) => offset >= (indexing.positions.get(partition)?.next ?? 0)),
        )
        await indexing.stop()
      }
    },
    query,
    close: () => dropTables(tables),
  }
}, 15)

test('an installation that is there is left as it is, but for its retention', async () => {
  const tables = await makeTables(30 * dayMs)
  for (const sql of ddl(tables, 2 * dayMs)) await run(sql)
  const [[written = ''] = []] = await clickHouse.rows({
    sql: `SELECT create_table_query FROM system.tables WHERE database = {database:String} AND name = {name:String}`,
    params: { database, name: tables.attempts },
  })
  expect(written).toContain('172800')
  await dropTables(tables)
})
