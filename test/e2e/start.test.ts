import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { runSluice, writeCatalog } from '../support/worker-process.ts'

const catalog = writeCatalog({ sources: [], destinations: [] })
/** Takes connections and says nothing, as a Kafka behind a broken network does. */
let silent: Server
let silentAddress = ''

beforeAll(async () => {
  silent = createServer().listen(0, '127.0.0.1')
  await until('it listens', () => silent.listening)
  const address = silent.address()
  silentAddress = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})

afterAll(() => {
  silent.close()
  catalog.remove()
})

describe.concurrent('a worker whose Kafka can not be reached', () => {
  test('ends with an error that names it, without a stack', async () => {
    const { stderr } = await runSluice(
      ['worker'],
      { SLUICE_KAFKA_BROKERS: '127.0.0.1:1', SLUICE_CATALOG_FILE: catalog.path },
      { expectedCode: 1 },
    )
    expect(stderr).toMatch(/^sluice: Kafka .*127\.0\.0\.1:1/)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('ends at once on SIGTERM while it tries', async () => {
    const main = resolve(import.meta.dirname, '../../src/main.ts')
    const child = spawn(process.execPath, [main, 'worker'], {
      env: {
        PATH: process.env['PATH'],
        SLUICE_KAFKA_BROKERS: silentAddress,
        SLUICE_CATALOG_FILE: catalog.path,
      },
      stdio: 'ignore',
    })
    const exited = new Promise((done) => child.once('exit', done))
    await until('it tries', () => hasConnection(silent))
    const startedMs = performance.now()
    child.kill('SIGTERM')
    await exited
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })
})

function hasConnection(server: Server): Promise<boolean> {
  return new Promise((done) => {
    server.getConnections((_error, count) => done(count > 0))
  })
}
