import { setTimeout as passTime } from 'node:timers/promises'
import { withAdmin } from '../src/kafka/with-admin.ts'
import { type GroupStand, groupStand } from '../test/support/group-lag.ts'
import { plainClient } from '../test/support/plain-client.ts'
import { type BackwardCommit, CommitWatch } from './backward-commits.ts'

/** Counts are since the start. */
export type Sample = {
  /** Epoch milliseconds. */
  atMs: number
  /** Events that Kafka had acknowledged. */
  sent: number
  /** Messages that their endpoints had taken, each once. */
  delivered: number
  /** Requests that had come to endpoints. */
  requests: number
  /** Workers that run and are not stopped. */
  awake: number
}

/** `records`: what the group had not committed of all its topics. */
export type LagSample = { atMs: number; records: number }

export type Sampling = {
  samples: readonly Sample[]
  lags: readonly LagSample[]
  backwardCommits: readonly BackwardCommit[]
  stop(): Promise<void>
}

const everyMs = 1_000
const lagEveryMs = 2_000

/** Looks on until it is stopped. While Kafka can't be asked, the lag has a gap. */
export function startSampling({
  take,
  brokers,
  groupId,
  prefix,
}: {
  take: () => Omit<Sample, 'atMs'>
  brokers: readonly string[]
  groupId: string
  prefix: string
}): Sampling {
  const samples: Sample[] = []
  const lags: LagSample[] = []
  const watch = new CommitWatch()
  const stopping = new AbortController()
  const { signal } = stopping
  const rest = (ms: number): Promise<void> =>
    passTime(ms, undefined, { signal }).then(
      () => undefined,
      () => undefined,
    )

  async function sample(): Promise<void> {
    while (!signal.aborted) {
      samples.push({ atMs: Date.now(), ...take() })
      await rest(everyMs)
    }
  }

  async function sampleLag(): Promise<void> {
    while (!signal.aborted) {
      // A connection of its own each time: one that a broker's death has broken would be waited for.
      const stand = await standOf(brokers, groupId, prefix).catch(() => undefined)
      if (stand !== undefined) {
        lags.push({ atMs: Date.now(), records: stand.lag })
        watch.note(Date.now(), stand.committed)
      }
      await rest(lagEveryMs)
    }
  }

  const running = Promise.all([sample(), sampleLag()])
  return {
    samples,
    lags,
    backwardCommits: watch.backward,
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** Where the group stands, by Kafka's own word. */
export function standOf(brokers: readonly string[], groupId: string, prefix: string): Promise<GroupStand> {
  return withAdmin(plainClient(brokers), (admin) => groupStand(admin, groupId, prefix))
}
