import { setTimeout as passTime } from 'node:timers/promises'
import { withAdmin } from '../src/kafka/cluster/with-admin.ts'
import { type GroupStand, groupStand } from '../test/support/group-lag.ts'
import { plainClient } from '../test/support/plain-client.ts'
import { type BackwardCommit, CommitWatch } from './backward-commits.ts'

/** A sample of the figures of a running drill. All counts except `awake` are totals since the start. */
export type Sample = {
  /** Epoch milliseconds. */
  atMs: number
  /** The number of acknowledged events. */
  sent: number
  /** The number of messages that endpoints had accepted, without repeats. */
  delivered: number
  /** The number of requests that had arrived at endpoints. */
  requests: number
  /** The number of workers that run and are not stopped at the moment. */
  awake: number
}

/** A sample of the lag. `records`: how many records of its topics the group had not committed, added up. */
export type LagSample = { atMs: number; records: number }

export type Sampling = {
  samples: readonly Sample[]
  lags: readonly LagSample[]
  backwardCommits: readonly BackwardCommit[]
  stop(): Promise<void>
}

const everyMs = 1_000
const lagEveryMs = 2_000

/** Takes samples until `stop` is called. There are no samples of the lag while Kafka doesn't answer. */
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
      // Each look opens a new connection. If a broker died, a look over an old connection would wait for its
      // answer.
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

/** Asks Kafka for the committed offsets and the lag of the group. */
export function standOf(brokers: readonly string[], groupId: string, prefix: string): Promise<GroupStand> {
  return withAdmin(plainClient(brokers), (admin) => groupStand(admin, groupId, prefix))
}
