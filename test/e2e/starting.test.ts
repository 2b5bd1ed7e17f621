import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { otherProgram, randomPrefix } from '../support/kafka.ts'
import { processesWith } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { type Ended, runToEnd, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

/** The time in milliseconds within which a failing start has to end, for each process that it starts. */
const endedWithinMs = 5_000

const worker = { role: 'worker', args: ['worker'] }
/** A worker whose main process starts two more processes, which load the worker. */
const processes = { role: 'worker of two processes', args: ['worker', '--processes', '2'] }
const gateway = { role: 'gateway', args: ['gateway'] }
const up = { role: 'up', args: ['up'] }

let scene: Scene
let taken: Server
let takenPort = 0
let folder = ''

beforeAll(async () => {
  scene = await setScene({ catalog: { sources: [{ id: 'shop' }], destinations: [] } })
  taken = await listen()
  takenPort = portOf(taken)
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-starting-')))
  writeFileSync(join(folder, 'file'), '')
})

afterAll(() => {
  scene.close()
  taken.close()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** Starts a server that accepts connections and sends nothing. */
async function listen(): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
  await until('it listens', () => server.listening)
  return server
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** The number of starts of which one has to end in time. Other tests may use all CPUs during some of them. */
const mostStarts = 3
/** How many times as long as the load of a role the rest of its start may take on a busy machine. */
const mostLoads = 2

/**
 * Starts a role that must fail to start. Checks that it ended as it should, and returns its standard error.
 * If the start took too long, starts the role again. `loadingMs` is the time that this machine now takes to
 * load the role. This time doesn't count towards the limit.
 */
async function failingStart(
  args: readonly string[],
  variables: Record<string, string>,
  { lines = 1, loadingMs = 0 } = {},
): Promise<string> {
  const limitMs = loadingMs + endedWithinMs * (args === processes.args ? 2 : 1)
  const tookMs: number[] = []
  for (;;) {
    // Every process of this start has this mark in its command line.
    const mark = `start-${randomPrefix()}`
    const ended = await runToEnd([...args, '--kafka-client-id', mark], { ...scene.variables, ...variables })
    expect(processesWith(mark)).toEqual([])
    expectOneError(ended, lines)
    tookMs.push(ended.tookMs)
    if (ended.tookMs < limitMs) return ended.stderr
    // On a busy machine, the rest of a start takes longer too, but not many times as long as the load of the role.
    const busyMs = mostLoads * (await loadingTimeOf(args))
    if (ended.tookMs < limitMs + busyMs) return ended.stderr
    expect(tookMs.length, `starts took ${tookMs.join(', ')} ms; the limit is ${limitMs}`).toBeLessThan(
      mostStarts,
    )
  }
}

/** Returns how long this machine now takes to load a role: one without a catalog ends before all else. */
async function loadingTimeOf(args: readonly string[]): Promise<number> {
  const catalog = { SLUICE_CATALOG_FILE: join(folder, 'none') }
  return (await runToEnd([...args], { ...scene.variables, ...catalog })).tookMs
}

function expectOneError({ code, stdout, stderr }: Ended, lines: number): void {
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^sluice: /) })
  expect(stderr.trimEnd().split('\n')).toHaveLength(lines)
  expect(stderr + stdout).not.toMatch(/^\s+at |"fatal"|"stack"/m)
}

async function membersOfGroup(): Promise<number> {
  const admin = otherProgram().admin()
  await admin.connect()
  const { groups } = await admin.describeGroups([scene.variables['SLUICE_KAFKA_GROUP_ID'] ?? ''])
  await admin.disconnect()
  return groups.reduce((sum, { members }) => sum + members.length, 0)
}

describe('a start ends with one error and exit code 1, and leaves nothing, when', () => {
  test.each([worker, processes, gateway, up])('the port for metrics is taken: $role', async ({ args }) => {
    const stderr = await failingStart(args, { SLUICE_HTTP_PORT: String(takenPort) })
    expect(stderr).toContain(`127.0.0.1:${takenPort} (EADDRINUSE)`)
    expect(stderr).toContain('SLUICE_HTTP_PORT')
    expect(await membersOfGroup()).toBe(0)
  })

  test.each([gateway, up])(
    'the port of the gateway is taken, once Kafka is connected: $role',
    async ({ args }) => {
      const loadingMs = await loadingTimeOf(args)
      const stderr = await failingStart(args, { SLUICE_GATEWAY_PORT: String(takenPort) }, { loadingMs })
      expect(stderr).toContain(`127.0.0.1:${takenPort} (EADDRINUSE)`)
      expect(stderr).toContain('SLUICE_GATEWAY_PORT')
      expect(await membersOfGroup()).toBe(0)
    },
  )

  test.each([processes, gateway])('nothing is where Kafka should be: $role', async ({ args }) => {
    const stderr = await failingStart(args, { SLUICE_KAFKA_BROKERS: '127.0.0.1:1' })
    expect(stderr).toMatch(/Kafka at 127\.0\.0\.1:1 .*SLUICE_KAFKA_BROKERS/)
  })

  test.each([worker, up])('what is where Kafka should be says nothing: $role', async ({ args }) => {
    const broker = `127.0.0.1:${takenPort}`
    const loadingMs = await loadingTimeOf(args)
    const stderr = await failingStart(args, { SLUICE_KAFKA_BROKERS: broker }, { loadingMs })
    expect(stderr).toMatch(new RegExp(`Kafka at ${broker} .*SLUICE_KAFKA_BROKERS`))
  })

  test.each([worker, processes])('there can be no folder for the state: $role', async ({ args }) => {
    const below = join(folder, 'file', 'state')
    const stderr = await failingStart(args, { SLUICE_STATE_FOLDER: below })
    expect(stderr).toContain(`${below}/`)
    expect(stderr).toMatch(/\(ENOTDIR\): set SLUICE_STATE_FOLDER/)
    expect(await membersOfGroup()).toBe(0)
  })

  test.each([up])('something else is where the state should be: $role', async ({ args }) => {
    const { SLUICE_KAFKA_TOPIC_PREFIX: prefix = '', SLUICE_KAFKA_GROUP_ID: group = '' } = scene.variables
    writeFileSync(join(folder, encodeURIComponent(prefix + group)), '')
    const stderr = await failingStart(args, { SLUICE_STATE_FOLDER: folder })
    expect(stderr).toMatch(/\(EEXIST\): set SLUICE_STATE_FOLDER/)
  })

  test.each([worker])('the certificates for the registry can not be read: $role', async ({ args }) => {
    const stderr = await failingStart(args, {
      SLUICE_REGISTRY_URL: 'https://registry.example',
      SLUICE_REGISTRY_CA_FILE: join(folder, 'file'),
    })
    expect(stderr).toContain('SLUICE_REGISTRY_CA_FILE')
    expect(await membersOfGroup()).toBe(0)
  })

  test.each([processes, up])('the catalog has a fault: $role', async ({ args }) => {
    const file = join(folder, 'catalog.yaml')
    writeFileSync(file, 'sources: shop\n')
    const stderr = await failingStart(args, { SLUICE_CATALOG_FILE: file }, { lines: 13 })
    expect(stderr).toContain(`The catalog ${file} has 2 faults`)
  })
})

test.each(['config', 'topics list', '--help', 'worker --help'])(
  'ends quietly when nobody reads on: sluice %s',
  async (command) => {
    const { code, stderr } = await runToEnd(command.split(' '), scene.variables, { isRead: false })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  },
)

test('a process that is killed while the others start ends all of them, with the reason', async () => {
  const mark = `start-${randomPrefix()}`
  // The second one is held up, so that it hasn't started when it is killed.
  const hold = `if (process.argv.join(' ').includes('--process-number 2')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000)`
  const ending = runToEnd(['worker', '--processes', '3', '--kafka-client-id', mark], {
    ...scene.variables,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hold)}`,
  })
  const { pid } = await until('the second one is about to start', () =>
    processesWith(mark).find(({ command }) => command.includes('--process-number 2')),
  )
  process.kill(pid, 'SIGKILL')
  const { code, stdout } = await ending
  // Processes that waited for the killed one would wait for good, and would be killed, without a code.
  expect(code).toBe(1)
  expect(stdout).toContain(`process 2 (pid ${pid}) was killed by SIGKILL`)
  expect(stdout).not.toContain('worker started')
  expect(processesWith(mark)).toEqual([])
  expect(await membersOfGroup()).toBe(0)
})

test('a registry that can not be reached is no reason not to start: what needs no schema is delivered', async () => {
  const started = await startSluice({ ...scene.variables, SLUICE_REGISTRY_URL: 'http://127.0.0.1:1' })
  expect((await started.terminate()).code).toBe(0)
})
