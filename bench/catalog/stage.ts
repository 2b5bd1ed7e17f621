import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { readConfig } from '../../src/config/read.ts'
import { startKafka } from '../../src/development/kafka.ts'
import { openCatalogDesk, type OpenedDesk } from '../../src/roles/operations/catalog-desk.ts'
import { applyTopicTable } from '../../src/roles/operations/topic-table.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import { made } from './edits.ts'
import { type Follower, startFollower } from './follower-process.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const waitMs = 120_000

/** A catalog of its own in a real Kafka, with a source, and a desk that changes it. */
export type Stage = {
  readonly desk: OpenedDesk
  readonly variables: Readonly<Record<string, string>>
  readonly folder: string
}

/** Opens a stage for a work, and closes it afterwards. */
export async function withDesk<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-catalog-'))
  writeFileSync(join(folder, 'keys'), newKeyLine())
  const kafka = await startKafka({ brokers: [], report: say })
  const variables = variablesOf(kafka.brokers, join(folder, 'keys'))
  const read = readConfig({ env: variables })
  if (!read.ok) throw new BenchmarkFailure(read.message)
  const { config } = read
  await applyTopicTable(config, silent)
  const desk = await openCatalogDesk(config, silent, 'admin')
  try {
    await made(desk, [{ name: { kind: 'source', id: 'shop' }, op: 'put', given: { id: 'shop' } }])
    return await work({ desk, variables, folder })
  } finally {
    await desk.close()
    await kafka.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Some processes that follow the catalog. */
export type Followers = {
  readonly all: readonly Follower[]
  /** Waits until all of them use a change. */
  allUse(revision: number): Promise<void>
  stop(): Promise<void>
}

/** Starts followers, each with a copy of its own on the disk. `name`: of their folders. */
export async function startFollowers(
  { variables, folder }: Stage,
  { name, count }: { readonly name: string; readonly count: number },
): Promise<Followers> {
  const all: Follower[] = []
  let wake: (() => void) | undefined
  for (let index = 0; index < count; index++) {
    const own = { ...variables, SLUICE_STATE_FOLDER: join(folder, `${name}-${index}`) }
    all.push(await startFollower(own, () => wake?.()))
  }
  return {
    all,
    async allUse(revision) {
      const untilMs = performance.now() + waitMs
      while (all.some((one) => one.revision < revision)) {
        if (performance.now() > untilMs) throw new BenchmarkFailure(`a follower does not use r${revision}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    async stop() {
      for (const one of all) await one.stop()
    },
  }
}

function variablesOf(brokers: readonly string[], keysFile: string): Readonly<Record<string, string>> {
  return {
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: `bench-${randomBytes(3).toString('hex')}.`,
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_CATALOG_SOURCE: 'topic',
    SLUICE_CATALOG_KEYS_FILE: keysFile,
  }
}
