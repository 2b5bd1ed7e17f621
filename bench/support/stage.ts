import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startKafka } from '../../src/development/kafka.ts'
import { type Fleet, writeFleet } from './fleet.ts'
import { type Recorder, startRecorder } from './recorder-process.ts'
import { type RunningWorker, startWorker } from './running-worker.ts'
import { createCertificates } from './tls.ts'
import { applyTopics, removeTopics } from './topics.ts'
import { workerVariables } from './worker-variables.ts'

/** Kafka and the customers' servers that all runs of a benchmark share. */
export type Stage = {
  brokers: readonly string[]
  recorder: Recorder
  /** A folder for files of the runs. It is removed when the stage is closed. */
  folder: string
  /**
   * True if Kafka is a child of this process. Then all other programs of the machine have nothing to do with
   * the benchmark.
   */
  ownsKafka: boolean
  /** Makes new topics and a new catalog for a run, so that it reads nothing of earlier runs. */
  setScene(plan: ScenePlan): Promise<Scene>
  close(): Promise<void>
}

export type ScenePlan = {
  fleet: Omit<Fleet, 'urlOf'>
  /** `SLUICE_…` variables in addition to those of every worker. */
  variables: Record<string, string>
}

export type Scene = {
  /** The topic of events that the worker reads. */
  topic: string
  /** The `SLUICE_…` variables of the worker, for commands. */
  variables: Readonly<Record<string, string>>
  /** Starts a worker. `main` is the main file of another build than the sources. */
  startWorker(options?: { main?: string }): Promise<RunningWorker>
  rewriteCatalog(fleet: Omit<Fleet, 'urlOf'>): void
}

/**
 * Starts Kafka, or attaches to `KAFKA_BROKERS`, and starts the servers of the destinations. With `tls` the
 * servers use TLS.
 */
export async function openStage({
  destinations,
  tls = false,
  profileDir,
  report,
}: {
  destinations: number
  tls?: boolean
  profileDir: string | undefined
  report: (line: string) => void
}): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const stagePrefix = `bench-${randomBytes(3).toString('hex')}.`
  const certificates = tls ? createCertificates(folder) : undefined
  const recorder = await startRecorder(destinations, certificates)
  const kafka = await startKafka({ heapMb: 1024, report })
  const { brokers } = kafka
  const nodeFlags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`]
  const catalogFile = join(folder, 'catalog.yaml')
  const outputFile = join(folder, 'worker.log')
  let scenes = 0

  return {
    brokers,
    recorder,
    folder,
    ownsKafka: kafka.way === 'java',
    async setScene(plan) {
      const prefix = `${stagePrefix}${++scenes}.`
      const rewriteCatalog: Scene['rewriteCatalog'] = (fleet) =>
        writeFleet(catalogFile, { ...fleet, urlOf: (destination) => recorder.urlOf(destination) })
      const variables = {
        ...workerVariables({ brokers, prefix, catalogFile }),
        ...certificates?.variables,
        SLUICE_KAFKA_GROUP_ID: `${prefix}workers`,
        ...plan.variables,
      }
      rewriteCatalog(plan.fleet)
      await applyTopics(folder, variables)
      return {
        topic: `${prefix}events`,
        variables,
        startWorker: ({ main } = {}) => startWorker({ outputFile, variables, nodeFlags, main }),
        rewriteCatalog,
      }
    },
    async close() {
      if (kafka.way === 'configured') await removeTopics(brokers, stagePrefix)
      await kafka.stop()
      await recorder.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
