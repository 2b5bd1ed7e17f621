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

/** Kafka and the customers' servers, for all runs of a benchmark. */
export type Stage = {
  brokers: readonly string[]
  recorder: Recorder
  /** For files of the runs; it goes with the stage. */
  folder: string
  /** Kafka is one of our own processes, so what is not ours on this machine is somebody else's. */
  ownsKafka: boolean
  /** Topics and a catalog of a run's own: nothing that an earlier run left is read again. */
  setScene(plan: ScenePlan): Promise<Scene>
  close(): Promise<void>
}

export type ScenePlan = {
  fleet: Omit<Fleet, 'urlOf'>
  /** `SLUICE_…` variables beside those of every worker. */
  variables: Record<string, string>
}

export type Scene = {
  /** Where the worker reads. */
  topic: string
  /** `main`: the entry of another build of the program than its sources. */
  startWorker(options?: { main?: string }): Promise<RunningWorker>
  /** Edits the catalog. */
  rewriteCatalog(fleet: Omit<Fleet, 'urlOf'>): void
}

/** Starts Kafka (or attaches to `KAFKA_BROKERS`) and servers for that many destinations, with `tls` over TLS. */
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
