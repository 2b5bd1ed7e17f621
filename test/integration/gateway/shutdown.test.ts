import { connect } from 'node:net'
import { setTimeout as passTime } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { post, startGateway, type TestGateway } from '../../support/gateway.ts'
import { startLoad } from '../../support/gateway-load.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

/** Much longer than any stop takes that doesn't wait for the end of this time. */
const shutdownTimeoutMs = 30_000

let gateway: TestGateway

beforeEach(async () => {
  gateway = await startGateway({ variables: { SLUICE_SHUTDOWN_TIMEOUT: `${shutdownTimeoutMs}ms` } })
})

afterEach(() => gateway.stop())

async function idsInTopic(): Promise<Set<unknown>> {
  return new Set((await gateway.read('events')).map(({ value }) => value['messageId']))
}

describe('SIGTERM', () => {
  test('under load ends in time, and everything that was answered 200 is in the topic', async () => {
    const load = startLoad(gateway.origin, { clients: 20 })
    await until('messages are taken', () => load.acknowledged.length > 2_000)
    const { code, tookMs } = await gateway.process.terminate()
    await load.stop()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(shutdownTimeoutMs / 2)
    const written = await idsInTopic()
    expect(load.acknowledged.filter((id) => !written.has(id))).toEqual([])
    // The gateway answers until the end. After that it accepts no connection, which counts as status 0.
    expect([...load.statuses.keys()].toSorted((a, b) => a - b)).toEqual([0, 200])
    expect(load.closing).toBeGreaterThan(0)
  })

  test('answers what is in flight, with Connection: close', async () => {
    const body = JSON.stringify({
      writeKey: 'KEY',
      batch: [{ type: 'page', userId: 'u1', messageId: 'last' }],
    })
    const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => (received += chunk.toString()))
    socket.write(
      `POST /v1/batch HTTP/1.1\r\nHost: g\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
    )
    await until('it is being received', async () => {
      return (await gateway.process.metric('sluice_gateway_receiving_bytes')) > 0
    })
    const ended = gateway.process.terminate()
    await until('it takes no connection', () => refusesConnections(gateway.process.gatewayPort))
    socket.write(body.slice(20))
    const { code, tookMs } = await ended
    expect([code, tookMs < shutdownTimeoutMs / 2]).toEqual([0, true])
    await until('the connection is closed', () => socket.closed)
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    expect(received.toLowerCase()).toContain('\r\nconnection: close\r\n')
    expect(await idsInTopic()).toEqual(new Set(['last']))
  })

  test('does not wait for clients that say nothing, nor for longer than it may', async () => {
    const variables = { ...gateway.variables, SLUICE_SHUTDOWN_TIMEOUT: '2s' }
    const hurried = await startSluice(variables, { role: 'gateway' })
    onTestFinished(() => hurried.kill())
    const idle = connect(hurried.gatewayPort, '127.0.0.1')
    const stuck = connect(hurried.gatewayPort, '127.0.0.1')
    for (const socket of [idle, stuck]) socket.on('error', () => {})
    stuck.write('POST /v1/batch HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\n{')
    await until('it is being received', async () => {
      return (await hurried.metric('sluice_gateway_receiving_bytes')) > 0
    })
    const { code, tookMs } = await hurried.terminate()
    expect(code).toBe(0)
    // A request that never ends is refused after ten seconds (`gateway.requestTimeout`).
    expect(tookMs).toBeLessThan(9_000)
    idle.destroy()
    stuck.destroy()
  })

  test('without requests ends at once', async () => {
    const idle = connect(gateway.process.gatewayPort, '127.0.0.1')
    idle.on('error', () => {})
    await passTime(50)
    const { code, tookMs } = await gateway.process.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(shutdownTimeoutMs / 2)
    idle.destroy()
  })
})

describe('SIGTERM behind a load balancer', () => {
  // So long that a client sees in time that it is leaving, on a busy machine too.
  const delayMs = 6_000
  const variables = { SLUICE_GATEWAY_SHUTDOWN_DELAY: `${delayMs}ms` }
  let leaving: SluiceProcess
  let staying: SluiceProcess

  beforeEach(async () => {
    ;[leaving, staying] = await Promise.all([
      startSluice({ ...gateway.variables, ...variables }, { role: 'gateway' }),
      startSluice({ ...gateway.variables, ...variables }, { role: 'gateway' }),
    ])
  })

  afterEach(async () => {
    for (const process of [leaving, staying]) if (process.isRunning) await process.kill()
  })

  test('no client sees a connection refused or cut, and none is held: all of their requests are answered 200', async () => {
    let ready = [leaving, staying]
    let next = 0
    const look = async (): Promise<void> => {
      const answers = await Promise.all([leaving, staying].map(isReady))
      ready = [leaving, staying].filter((_, index) => answers[index])
    }
    const watching = setInterval(() => void look(), 100)
    const load = startLoad(() => `http://127.0.0.1:${ready[next++ % ready.length]?.gatewayPort}`, {
      clients: 20,
    })
    await until('messages are taken', () => load.acknowledged.length > 2_000)
    const { code, tookMs } = await leaving.terminate()
    const after = load.acknowledged.length
    await until('the other one goes on', () => load.acknowledged.length > after + 1_000)
    await load.stop()
    clearInterval(watching)
    expect(Object.fromEntries(load.statuses)).toEqual({ 200: expect.any(Number) })
    expect(load.closing).toBeGreaterThan(0)
    expect([code, tookMs >= delayMs]).toEqual([0, true])
    const written = await idsInTopic()
    expect(load.acknowledged.filter((id) => !written.has(id))).toEqual([])
  })

  test('is first unready, while new connections are still taken and told not to stay', async () => {
    const ended = leaving.terminate()
    await until('it is not ready', async () => !(await isReady(leaving)))
    const reply = await post(`http://127.0.0.1:${leaving.gatewayPort}/v1/page`, {
      writeKey: 'KEY',
      userId: 'u1',
    })
    expect([reply.status, reply.headers.get('connection')]).toEqual([200, 'close'])
    const { code, tookMs } = await ended
    expect([code, tookMs >= delayMs]).toEqual([0, true])
    expect(leaving.log.map(({ msg }) => msg)).toContain(
      'stopping: no longer ready, still accepting connections',
    )
  })
})

async function isReady({ httpPort }: SluiceProcess): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}/readyz`).catch(() => undefined)
  return answer?.status === 200
}

function refusesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', () => resolve(true))
  })
}
