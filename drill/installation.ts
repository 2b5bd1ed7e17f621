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
import { catalogOf, type Destination } from './fleet.ts'
import { GatewayKeeper } from './gateway-keeper.ts'

/** Sluice as an operator runs it: workers with a volume each, and a gateway. */
export type Installation = {
  prefix: string
  groupId: string
  group: ChangingGroup
  gateway: GatewayKeeper
  /** Starts that failed, in their words: a supervisor makes them again. */
  failedStarts: readonly string[]
  /** Pauses one destination in the catalog, or lets it go on. */
  pauseDestination(isPaused: boolean): void
  /** Ends what still runs, and removes its files. */
  remove(): Promise<void>
}

const program = resolve(import.meta.dirname, '../src/main.ts')
const workerCount = 3
export const partitions = 6
/** Of the ladder; each has a topic. */
export const retryWaits = ['2s', '10s', '30s'] as const
/** Workers that were killed are started again before their places are free for certain. */
const places = workerCount + 3
/** Two of the workers come back under their names, as in a StatefulSet. */
const namedPlaces = 2
const readyMs = 90_000
const mostStartMs = 180_000
const startAgainMs = 1_000

/** Applies topics, and starts all that is to run; resolves when it is ready. */
export async function openInstallation({
  brokers,
  trust,
  urlOf,
}: {
  /** As Sluice reaches them. */
  brokers: readonly string[]
  trust: Trust
  urlOf: (destination: Destination) => string
}): Promise<Installation> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-drill-'))
  const catalog = writeCatalog(catalogOf({ urlOf, isPaused: false }))
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
  const applied = await runProgram(program, ['topics', 'apply'], { env: environmentOf(variables) })
  if (applied.code !== 0) throw new Error(`topics could not be made:\n${applied.stderr}${applied.stdout}`)

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
    pauseDestination: (isPaused) => catalog.rewrite(catalogOf({ urlOf, isPaused })),
    remove,
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
  // With where each partition is begun.
  SLUICE_LOG_LEVEL: 'debug',
}

async function isReady({ httpPort }: SluiceProcess): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${httpPort}/readyz`)).ok
}
