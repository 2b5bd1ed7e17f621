import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { freePorts } from '../src/development/free-ports.ts'
import { ChangingGroup } from '../test/support/changing-group.ts'
import {
  environmentOf,
  runProgram,
  type SluiceProcess,
  startProgram,
  writeCatalog,
} from '../test/support/sluice-process.ts'
import type { Trust } from '../test/support/trust.ts'
import { catalogOf, type Destination, destinations } from './fleet.ts'
import { GatewayKeeper } from './gateway-keeper.ts'

/**
 * An installation of Sluice as an operator runs it. Each worker has its own volume, and there is one gateway.
 */
export type Installation = {
  prefix: string
  groupId: string
  group: ChangingGroup
  gateway: GatewayKeeper
  /** The failed starts of processes, with their error messages. Each failed start is tried again. */
  failedStarts: readonly string[]
  /** Pauses or resumes, in the catalog, the destinations that have `isPaused`. */
  pauseDestination(isPaused: boolean): void
  /** Edits the headers of the destinations that have `isEdited`, in the catalog. */
  editDestinations(): void
  /** Calls back the failed messages of these destinations. Tries again while Kafka doesn't answer. */
  retryNow(): Promise<void>
  /** Ends all processes that still run, and removes their files. */
  remove(): Promise<void>
}

const program = resolve(import.meta.dirname, '../src/main.ts')
const workerCount = 3
export const partitions = 6
/** The waits of the retry ladder. Each wait has a topic. */
export const retryWaits = ['2s', '10s', '30s'] as const
/**
 * The number of places for workers. A place is a folder for states, and one worker uses it at a time. There
 * are spare places, because a new worker may start before the place of a killed worker is free.
 */
const places = workerCount + 3
/** The number of places whose workers have a fixed instance id, as in a StatefulSet. */
const namedPlaces = 2
const readyMs = 90_000
const mostStartMs = 180_000
const startAgainMs = 1_000

/** Applies the topics, and starts the workers and the gateway. Resolves when they are ready. */
export async function openInstallation({
  brokers,
  trust,
  urlOf,
}: {
  /** The addresses at which Sluice reaches the brokers. */
  brokers: readonly string[]
  trust: Trust
  urlOf: (destination: Destination) => string
}): Promise<Installation> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-drill-'))
  const catalog = writeCatalog(catalogOf({ urlOf, isPaused: false, edition: 0 }))
  const prefix = 'drill.'
  const groupId = `${prefix}group`
  const [gatewayPort = 0] = await freePorts(1)
  const variables = {
    ...trust.variables,
    ...settings,
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_KAFKA_GROUP_ID: groupId,
    SLUICE_CATALOG_FILE: catalog.path,
    SLUICE_GATEWAY_PORT: String(gatewayPort),
    SLUICE_STATE_FOLDER: join(folder, 'gateway'),
    CATALOG_WORKER: 'none',
  }
  const env = environmentOf(variables)
  await applyTopics(env)
  const failedStarts: string[] = []
  async function startPatiently(
    what: string,
    role: string,
    own: Record<string, string>,
  ): Promise<SluiceProcess> {
    const deadlineMs = performance.now() + mostStartMs
    for (;;) {
      try {
        return await startProgram(program, { role, env: environmentOf({ ...variables, ...own }), readyMs })
      } catch (error) {
        failedStarts.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
        if (performance.now() > deadlineMs) throw error
        await passTime(startAgainMs)
      }
    }
  }

  const taken = new Set<number>()
  async function startWorker(name: string): Promise<SluiceProcess> {
    const place = Array.from({ length: places }, (_, index) => index).find((index) => !taken.has(index))
    if (place === undefined) throw new Error('there is no place for another worker')
    taken.add(place)
    const worker = await startPatiently(name, 'worker', {
      CATALOG_WORKER: name,
      SLUICE_STATE_FOLDER: join(folder, `worker-${place}`),
      ...(place < namedPlaces && { SLUICE_KAFKA_INSTANCE_ID: `worker-${place}` }),
    })
    void worker.exited.then(() => taken.delete(place))
    return worker
  }

  const group = new ChangingGroup({ start: startWorker, isBack: isReady })
  const gateway = new GatewayKeeper(`http://127.0.0.1:${gatewayPort}`, () =>
    startPatiently('gateway', 'gateway', {}),
  )
  async function remove(): Promise<void> {
    await Promise.all([group.destroy(), gateway.destroy()])
    catalog.remove()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    const workers = Array.from({ length: workerCount }, () => group.join())
    await Promise.all([...workers, gateway.start()])
  } catch (error) {
    await remove()
    throw error
  }
  return {
    prefix,
    groupId,
    group,
    gateway,
    failedStarts,
    ...editsOf(catalog, urlOf),
    retryNow: () => retryNow(env),
    remove,
  }
}

async function applyTopics(env: NodeJS.ProcessEnv): Promise<void> {
  const applied = await runProgram(program, ['topics', 'apply'], { env })
  if (applied.code !== 0) throw new Error(`topics could not be made:\n${applied.stderr}${applied.stdout}`)
}

/** Returns the functions that edit the catalog. */
function editsOf(
  catalog: ReturnType<typeof writeCatalog>,
  urlOf: (destination: Destination) => string,
): Pick<Installation, 'pauseDestination' | 'editDestinations'> {
  let state = { isPaused: false, edition: 0 }
  function edit(next: Partial<typeof state>): void {
    state = { ...state, ...next }
    catalog.rewrite(catalogOf({ urlOf, ...state }))
  }
  return {
    pauseDestination: (isPaused) => edit({ isPaused }),
    editDestinations: () => edit({ edition: state.edition + 1 }),
  }
}

async function retryNow(env: NodeJS.ProcessEnv): Promise<void> {
  const deadlineMs = performance.now() + mostStartMs
  const left = destinations.filter(({ isEdited }) => isEdited).map(({ id }) => id)
  for (let [id] = left; id !== undefined; [id] = left) {
    const { code, stderr } = await runProgram(program, ['destinations', 'retry-now', id], { env })
    if (code === 0) left.shift()
    else if (performance.now() > deadlineMs) throw new Error(`retry-now of ${id}: ${stderr}`)
    else await passTime(startAgainMs)
  }
}

const settings = {
  SLUICE_TOPICS_DEVELOPMENT: 'false',
  SLUICE_TOPICS_REPLICATION: '3',
  SLUICE_TOPICS_MIN_INSYNC: '2',
  SLUICE_TOPICS_PARTITIONS: String(partitions),
  SLUICE_KAFKA_SESSION_TIMEOUT: '6s',
  SLUICE_RETRY_LADDER: retryWaits.join(','),
  SLUICE_RETRY_THEN: '30s',
  SLUICE_BREAKER_MAX_OPEN_FOR: '5s',
  SLUICE_LOG_ATTEMPTS: 'false',
  // At this level, a worker logs each partition that it begins. `readOwners` needs these lines.
  SLUICE_LOG_LEVEL: 'debug',
}

async function isReady({ httpPort }: SluiceProcess): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).ok
}
