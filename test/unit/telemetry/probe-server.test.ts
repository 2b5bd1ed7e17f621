import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { serveTelemetry } from '../../../src/telemetry/probe-server.ts'
import { quietLog } from '../../support/emitted-lines.ts'
import { exchange } from '../../support/exchange.ts'
import { sendPipelined } from '../../support/pipelined.ts'
import { until } from '../../support/until.ts'

let server: Awaited<ReturnType<typeof serveTelemetry>>
let reasons: string[] = []

beforeAll(async () => {
  server = await serveTelemetry({
    host: '127.0.0.1',
    port: 0,
    log: quietLog,
    probes: {
      metrics: async () => ({ ok: true, text: 'up 1\n' }),
      notLive: () => Promise.reject(new Error('no answer')),
      notReady: async () => reasons,
    },
  })
})

afterAll(() => server.stop())

const urlOf = (file: string): string => new URL(`../../../src/telemetry/${file}`, import.meta.url).href

/** A program that logs the path of each probe. */
const probed = `
  import { createLogger } from '${urlOf('logger.ts')}'
  import { serveTelemetry } from '${urlOf('probe-server.ts')}'
  const { log } = createLogger({ level: 'info' })
  const notes = (path, answer) => async () => (log.info({ path }), answer)
  const probes = {
    metrics: notes('/metrics', { ok: true, text: '' }),
    notLive: notes('/livez', []),
    notReady: notes('/readyz', []),
  }
  const { port } = await serveTelemetry({ host: '127.0.0.1', port: 0, log, probes })
  log.info({ port })
`

const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${server.port}${path}`, { method })

describe('the port of metrics and probes', () => {
  test('answers with the metrics in the format of Prometheus, whatever the query', async () => {
    const response = await ask('/metrics?name[]=up')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4')
    expect(await response.text()).toBe('up 1\n')
  })

  test('tells why it is not ready, a reason a line', async () => {
    reasons = ['starting', 'no catalog']
    const response = await ask('/readyz')
    expect(response.status).toBe(503)
    expect(await response.text()).toBe('starting\nno catalog\n')
    reasons = []
    expect(await (await ask('/readyz')).text()).toBe('ready\n')
  })

  test('answers HEAD without a body', async () => {
    const response = await ask('/readyz', 'HEAD')
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })

  test('answers 500 when a probe fails, 404 for other paths, and 405 to other methods', async () => {
    expect((await ask('/livez')).status).toBe(500)
    expect((await ask('/')).status).toBe(404)
    expect((await ask('/readyz', 'POST')).status).toBe(405)
  })

  test.each([
    ['attacker.example', 403],
    ['localhost.attacker.example:9400', 403],
    ['127.0.0.1.attacker.example', 403],
    ['LOCALHOST:1', 200],
    ['sluice.localhost', 200],
    ['127.0.0.2', 200],
    ['[::1]:9400', 200],
  ])('on a loopback address, answers a page that names it %s with %i', async (host, status) => {
    const text = `GET /metrics HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    expect(await exchange(server.port, text)).toContain(`HTTP/1.1 ${status} `)
  })

  test('on all addresses, answers whatever the name', async () => {
    const probes = {
      metrics: async () => ({ ok: true, text: '' }) as const,
      notLive: async () => [],
      notReady: async () => [],
    }
    const other = await serveTelemetry({ host: '0.0.0.0', port: 0, log: quietLog, probes })
    const text = 'GET /metrics HTTP/1.1\r\nHost: worker-0.sluice\r\nConnection: close\r\n\r\n'
    expect(await exchange(other.port, text)).toContain('HTTP/1.1 200 ')
    await other.stop()
  })

  test('answers few requests of a client that does not wait for answers', async () => {
    let scrapes = 0
    const other = await serveTelemetry({
      host: '127.0.0.1',
      port: 0,
      log: quietLog,
      probes: {
        metrics: async () => {
          scrapes++
          return { ok: true, text: 'up 1\n' }
        },
        notLive: async () => [],
        notReady: async () => [],
      },
    })
    await sendPipelined(other.port, 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await other.stop()
    expect(scrapes).toBe(16)
  })

  test('writes out the log before it answers', async () => {
    const program = spawn(process.execPath, ['--input-type=module', '-e', probed], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void program.kill())
    const lines: { port?: number; path?: string }[] = []
    createInterface(program.stdout).on('line', (line) => lines.push(JSON.parse(line)))
    const port = await until('it listens', () => lines[0]?.port)
    for (const path of ['/metrics', '/livez', '/readyz']) {
      await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
      await turn()
      expect(lines.at(-1)).toMatchObject({ path })
    }
  })

  test('stops although a connection is open', async () => {
    const other = await serveTelemetry({
      host: '127.0.0.1',
      port: 0,
      log: quietLog,
      probes: {
        metrics: () => new Promise(() => undefined),
        notLive: async () => [],
        notReady: async () => [],
      },
    })
    const answer = fetch(`http://127.0.0.1:${other.port}/metrics`)
    expect(await (await fetch(`http://127.0.0.1:${other.port}/livez`)).text()).toBe('live\n')
    const [answered] = await Promise.allSettled([answer, other.stop()])
    expect(answered.status).toBe('rejected')
  })
})
