import { afterAll, beforeAll } from 'vitest'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { logForAdmin, recordsInLog, testAdminLog, userKey } from '../support/admin-log.ts'
import { startClickHouse, type TestClickHouse } from '../support/clickhouse.ts'
import { produce } from '../support/kafka.ts'
import { readJson } from '../support/post.ts'
import { until } from '../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'

/**
 * Tests of the admin API with a delivery log in ClickHouse. The answers have to be the same as with a log in
 * files.
 */

let server: TestClickHouse
let tokens: AdminTokens
let scene: Scene
let index: SluiceProcess
let admin: SluiceProcess

beforeAll(async () => {
  server = await startClickHouse()
  tokens = await makeTokens()
  scene = await setScene({
    catalog: { sources: [{ id: 'shop' }], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_ATTEMPTS_USER_KEY: userKey,
      SLUICE_CLICKHOUSE_URL: server.url,
      SLUICE_CLICKHOUSE_USER: server.user,
      SLUICE_CLICKHOUSE_PASSWORD: server.password,
      SLUICE_CLICKHOUSE_DATABASE: 'sluice_test',
    },
  })
  await runSluice(['log', 'ddl', '--apply'], scene.variables)
  index = await startSluice(scene.variables, { role: 'log serve' })
  admin = await startSluice(scene.variables, { role: 'admin' })
  await produce(`${scene.prefix}attempts`, [{ key: '0', value: logForAdmin(), partition: 0 }])
  await until('all is inserted', async () => {
    return (await index.metric('sluice_log_indexed_total')) === recordsInLog
  })
})

afterAll(async () => {
  await Promise.all([index, admin].map((one) => one.kill()))
  scene.close()
  tokens.remove()
  await server.stop()
})

testAdminLog(async (path, body) => {
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${tokens.read}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, json: readJson(await response.text()) }
}, null)
