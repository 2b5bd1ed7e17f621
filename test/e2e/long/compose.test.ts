import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { readTokens } from '../../../src/admin/tokens.ts'
import { freePorts } from '../../../src/development/free-ports.ts'
import { randomPrefix, testKafka } from '../../support/kafka.ts'
import { startSchemaRegistry } from '../../support/schema-registry.ts'
import { until } from '../../support/until.ts'
import { type CatalogData, runSluice, startSluice, writeCatalog } from '../../support/worker-process.ts'

const root = resolve(import.meta.dirname, '../..')
const composeText = readFileSync(join(root, 'docker-compose.yml'), 'utf8')

type Service = {
  restart?: string
  ports?: string[]
  command?: string[]
  environment?: Record<string, string | number>
  healthcheck?: { test: string[] }
  depends_on?: Record<string, { condition: string }>
}

const { services }: { services: Record<string, Service> } = parse(composeText, { merge: true })

function service(name: string): Service {
  const found = services[name]
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`)
  return found
}

describe('docker-compose.yml', () => {
  test('has a health check for every service, or one that waits for its end', () => {
    const awaited = Object.values(services).flatMap(({ depends_on: needs = {} }) =>
      Object.entries(needs).flatMap(([name, { condition }]) =>
        condition === 'service_completed_successfully' ? [name] : [],
      ),
    )
    const without = Object.entries(services).filter(
      ([name, { healthcheck }]) => healthcheck === undefined && !awaited.includes(name),
    )
    expect(without).toEqual([])
    expect(new Set(awaited)).toEqual(new Set(['topics']))
  })

  test('starts every service again, but the one whose end is awaited', () => {
    const without = Object.entries(services).filter(([, { restart }]) => restart !== 'unless-stopped')
    expect(without.map(([name]) => name)).toEqual(['topics'])
  })

  test('gives each port of this machine to one service, and leaves 3000 to the webhook of the README', () => {
    const ports = Object.values(services).flatMap(({ ports: all = [] }) =>
      all.map((port) => port.split(':')[1]),
    )
    expect(ports).toHaveLength(new Set(ports).size)
    expect(ports).not.toContain('3000')
  })

  test('has an admin API that takes the token which its head names', () => {
    const [, token = ''] = /Bearer (\S+)'/.exec(composeText) ?? []
    const read = readTokens(readFileSync(join(root, 'deploy/compose/admin-tokens'), 'utf8'))
    if (!read.ok) throw new Error(read.problem)
    const digest = createHash('sha256').update(token).digest()
    expect(read.tokens.map((one) => one.digest.equals(digest))).toEqual([true])
  })

  test('delivers the first curl that it names, signed, with the settings and the catalog that it gives', async () => {
    const [receiverPort = 0] = await freePorts(1)
    const receiver = startReceiver(receiverPort)
    const catalog = writeCatalog(catalogFor(`http://127.0.0.1:${receiverPort}`))
    onTestFinished(() => catalog.remove())
    const prefix = randomPrefix()
    const variables = (name: string): Record<string, string> => {
      const { environment = {} } = service(name)
      const given = Object.entries(environment).map(([key, value]) => [key, String(value)])
      return {
        ...Object.fromEntries(given),
        SLUICE_KAFKA_BROKERS: testKafka().join(','),
        SLUICE_KAFKA_TOPIC_PREFIX: prefix,
        SLUICE_CATALOG_FILE: catalog.path,
        // Here the receiver listens on this machine, and not on Docker's network.
        SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
      }
    }
    await runSluice(service('topics').command ?? [], variables('topics'))
    const gateway = await startSluice(variables('gateway'), { role: 'gateway' })
    const worker = await startSluice(variables('worker'))
    const { path, key, body } = firstCurl()
    const answer = await fetch(`http://127.0.0.1:${gateway.gatewayPort}${path}`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(key)}` },
      body,
    })
    expect(answer.status).toBe(200)
    await until('it has arrived, and is signed', () => /^signed .*"Order Completed"/m.test(receiver.said))
    expect(receiver.said).not.toContain('WRONG')
    await worker.terminate()
    await gateway.terminate()
  })

  test('its check of the registry passes where that answers, and fails where nobody listens', async () => {
    const registry = await startSchemaRegistry()
    const [command = '', ...args] = service('registry').healthcheck?.test.slice(1) ?? []
    const port = new URL(registry.url).port
    const check = () =>
      exitOf(
        command,
        args.map((text) => text.replaceAll('$$', '$').replace('/8080', `/${port}`)),
      )
    expect(args.join(' ')).toContain('/dev/tcp/127.0.0.1/8080')
    expect(await check()).toBe(0)
    await registry.stop()
    expect(await check()).not.toBe(0)
  })

  test('its health checks pass where Sluice is ready, and fail where nobody listens', async () => {
    const [port = 0] = await freePorts(1)
    const receiver = startReceiver(port)
    await until('it listens', () => receiver.said.includes('listening'))
    const script = service('receiver').healthcheck?.test.at(-1) ?? ''
    expect(script).toContain('127.0.0.1:3000')
    const check = () => exitOf(process.execPath, ['-e', script.replace('3000', String(port))])
    expect(await check()).toBe(0)
    receiver.stop()
    await until('it fails', async () => (await check()) === 1)
  })
})

function startReceiver(port: number) {
  const child = spawn(process.execPath, [join(root, 'deploy/compose/receiver.mjs'), String(port)])
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const stop = () => child.kill('SIGTERM')
  onTestFinished(() => void stop())
  return {
    get said() {
      return said
    },
    stop,
  }
}

/** Returns the catalog of deploy/compose/catalog.yaml, with `origin` as the address of the receiver. */
function catalogFor(origin: string): CatalogData {
  const text = readFileSync(join(root, 'deploy/compose/catalog.yaml'), 'utf8')
  expect(text).toContain('http://receiver:3000/')
  return parse(text.replace('http://receiver:3000', origin))
}

/**
 * Returns the request of the first curl command in the head of the compose file. Checks that the README has
 * the same command.
 */
function firstCurl(): { path: string; key: string; body: string } {
  const [line = ''] = /^#\s+curl .*$/m.exec(composeText) ?? []
  expect(readFileSync(join(root, 'README.md'), 'utf8')).toContain(line.replace(/^#\s+/, ''))
  const [, path = '', key = '', body = ''] = /8080(\S+) -u (\S+) -d '(.*)'/.exec(line) ?? []
  return { path, key, body }
}

function exitOf(command: string, args: readonly string[]): Promise<number | null> {
  return new Promise((done) => spawn(command, args).once('exit', done))
}
