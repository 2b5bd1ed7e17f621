import { setTimeout as passTime } from 'node:timers/promises'
import type { KafkaMessage } from 'kafkajs'
import { watchOthers } from '../bench/support/machine-cpu.ts'
import { readTopic } from '../bench/support/topic-reader.ts'
import { say } from '../bench/support/say.ts'
import { parseQueued } from '../src/waiting/marks.ts'
import { tenureOf } from '../src/waiting/tenure.ts'
import { keyOf } from '../test/support/delivery-book.ts'
import { readJson } from '../test/support/post.ts'
import { startProxiedKafka } from '../test/support/proxied-kafka.ts'
import { type Toxiproxy, startToxiproxy } from '../test/support/toxiproxy.ts'
import { createTrust, type Trust } from '../test/support/trust.ts'
import { until } from '../test/support/until.ts'
import { type Endpoints, startEndpoints } from './endpoints.ts'
import type { DeadLetter, Evidence, ParkedTry } from './evidence.ts'
import { type Installation, openInstallation, partitions, retryWaits } from './installation.ts'
import { Ledger } from './ledger.ts'
import { judge, type Verdict } from './oracle.ts'
import { readOwners, readTenants } from './owners.ts'
import { recordsAbout } from './records-about.ts'
import { createActor, type Happened, playFaults, describeFault } from './play.ts'
import { startProgress } from './progress.ts'
import { brokerCount, scheduleOf } from './schedule.ts'
import { type LagSample, type Sample, type Sampling, standOf, startSampling } from './samples.ts'
import type { DrillSettings } from './settings.ts'
import { startTraffic, type Traffic } from './traffic.ts'

/** A drill that is over. All times are in epoch milliseconds. */
export type Drill = {
  settings: DrillSettings
  /** The time when the faults began, just after the traffic. */
  startedMs: number
  /** The time when the last fault was over. Traffic stops at this time. */
  calmMs: number
  /** The time when everything was settled, or when the drill stopped waiting for that. */
  settledMs: number
  samples: readonly Sample[]
  lags: readonly LagSample[]
  ledger: Ledger
  requests: number
  audienceChanges: { written: number; syncs: number; deletions: number }
  failedStarts: readonly string[]
  /**
   * The log lines of all processes in order of time, without attempts. After them come the failed starts, the
   * faults, the records about users with wrong values, and the requests that customers got about these users.
   */
  log: readonly string[]
  /** The share of the machine's CPU time that other programs used, from 0 to 1. */
  othersShare: number
  evidence: Evidence
  verdict: Verdict
}

type Opened = {
  settings: DrillSettings
  brokers: readonly string[]
  endpoints: Endpoints
  installation: Installation
  ledger: Ledger
}

const mostSettleMs = 240_000

/**
 * Starts everything, plays the faults, waits until everything is settled, and judges the drill. Ends
 * everything that it has started, also after an error.
 */
export async function runDrill(settings: DrillSettings): Promise<Drill> {
  const trust = createTrust('https')
  const closing: (() => Promise<void> | void)[] = [() => trust.remove()]
  try {
    say(
      `starting ${brokerCount} brokers, a proxy in front of each, three workers and a gateway; seed ${settings.seed}`,
    )
    const toxiproxy = await startToxiproxy()
    closing.push(() => toxiproxy.stop())
    return await withToxiproxy({ settings, trust, toxiproxy, closing })
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

async function withToxiproxy({
  settings,
  trust,
  toxiproxy,
  closing,
}: {
  settings: DrillSettings
  trust: Trust
  toxiproxy: Toxiproxy
  closing: (() => Promise<void> | void)[]
}): Promise<Drill> {
  const kafka = await startProxiedKafka(toxiproxy, brokerCount)
  closing.push(() => kafka.stop())
  const endpoints = await startEndpoints(settings.seed, trust)
  closing.push(() => endpoints.stop())
  const endpointProxy = await toxiproxy.proxy('endpoint', endpoints.https.port)
  const installation = await openInstallation({
    brokers: kafka.proxied,
    trust,
    urlOf: ({ scheme, isProxied }) =>
      isProxied ? `${scheme}://127.0.0.1:${endpointProxy.port}` : endpoints[scheme].origin,
  })
  closing.push(() => installation.remove())
  const opened: Opened = { settings, brokers: kafka.direct, endpoints, installation, ledger: new Ledger() }
  return play(opened, createActor({ installation, kafka, endpointProxy }))
}

async function play(opened: Opened, act: ReturnType<typeof createActor>): Promise<Drill> {
  const { settings, brokers, endpoints, installation, ledger } = opened
  const { prefix, groupId, group, gateway } = installation
  const lengthMs = settings.minutes * 60_000
  const traffic = await startTraffic({
    ...settings,
    brokers,
    prefix,
    gatewayOrigin: gateway.origin,
    partitions,
    lengthMs,
    endpoints,
    ledger,
  })
  const startedMs = Date.now()
  const watched = watchOthers()
  const faults = playFaults(scheduleOf({ seed: settings.seed, lengthMs }), act)
  const sampling = startSampling({
    brokers,
    groupId,
    prefix,
    take: () => ({
      sent: ledger.acknowledged.length,
      delivered: endpoints.distinct,
      requests: endpoints.requests,
      awake: group.awake,
    }),
  })
  const progress = startProgress({ startedMs, sampling, faults })
  const mishaps: string[] = []
  const note = (what: string) => (error: unknown) =>
    void mishaps.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
  try {
    await passTime(lengthMs)
    await faults.ended.catch(note('a fault did not end'))
    await group.thaw().catch(note('a worker that was stopped did not come back'))
    endpoints.recover()
    const calmMs = Date.now()
    say('all faults are over: waiting until everything has come to its end')
    await inTime(traffic.stop(), mostSettleMs).catch(note('traffic did not end'))
    const lagLeft = await settle(opened)
    const settledMs = Date.now()
    const othersShare = watched()
    const ended = mishapOf(installation)
    if (ended !== undefined) mishaps.push(ended)
    await progress.stop()
    await sampling.stop()
    await group.close().catch(note('a worker did not stop'))
    await gateway.stop().catch(note('the gateway did not stop'))
    const evidence = await gather({
      opened,
      traffic,
      sampling,
      happened: faults.happened,
      mishaps,
      lagLeft,
    })
    const wrong = new Set(
      evidence.audiences.flatMap(({ wrong: values, sentTooLate, heldTooLong }) => [
        ...values.map(({ user }) => user),
        ...[...sentTooLate, ...heldTooLong].map((line) => line.split(' ', 1)[0] ?? ''),
      ]),
    )
    const about = await recordsAbout(brokers, prefix, wrong)
    const told = [...endpoints.audiences].flatMap(([destination, customer]) =>
      [...wrong].flatMap((user) => customer.historyOf(user).map((line) => `${destination} ${user} ${line}`)),
    )
    return {
      settings,
      startedMs,
      calmMs,
      settledMs,
      samples: sampling.samples,
      lags: sampling.lags,
      ledger,
      requests: endpoints.requests,
      audienceChanges: {
        written: traffic.audiences.written,
        syncs: traffic.audiences.syncs,
        deletions: traffic.audiences.deletions,
      },
      failedStarts: installation.failedStarts,
      log: [...linesOf(installation), ...faultLines(evidence), ...about, ...told],
      othersShare,
      evidence,
      verdict: judge(evidence),
    }
  } finally {
    await progress.stop()
    await sampling.stop()
  }
}

function linesOf({ group, gateway, failedStarts }: Installation): string[] {
  const logs = [...group.logs, ...gateway.logs.map((log, index) => [`gateway ${index + 1}`, log] as const)]
  const lines = logs.flatMap(([name, log]) =>
    log
      .filter(({ msg }) => msg !== 'attempt')
      .map(({ time, ...line }) => `${String(time)} ${name} ${JSON.stringify(line)}`),
  )
  return [...lines.sort(), ...failedStarts.map((start) => `a start failed: ${start}`)]
}

/** Returns a line for each fault and each change of the group, with its beginning and its end. */
function faultLines({ changes, happened }: Pick<Evidence, 'changes' | 'happened'>): string[] {
  const ofWorkers = changes.map(
    ({ kind, worker, fromMs, toMs }) => `${timeOf(fromMs)} ${worker}: ${kind} until ${timeOf(toMs)}`,
  )
  const others = happened.map(
    ({ fault, fromMs, toMs }) => `${timeOf(fromMs)} fault: ${describeFault(fault)} until ${timeOf(toMs)}`,
  )
  return [...ofWorkers, ...others].sort()
}

function timeOf(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : 'the end'
}

async function inTime(work: Promise<void>, mostMs: number): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not within ${mostMs / 1_000} s`)), mostMs)
  await Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}

/** Returns an error text if a process has ended by itself, and `undefined` otherwise. */
function mishapOf({ group, gateway }: Installation): string | undefined {
  try {
    group.refuseLosses()
    return gateway.isWell ? undefined : 'the gateway has ended by itself'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * Waits until all records are committed, at most `mostSettleMs`. Returns the number of records that are not
 * committed then.
 */
async function settle({ brokers, installation: { groupId, prefix } }: Opened): Promise<number> {
  let left = Infinity
  await until(
    'all is committed',
    async () => {
      left = (await standOf(brokers, groupId, prefix)).lag
      return left === 0
    },
    { timeoutMs: mostSettleMs, everyMs: 1_000 },
  ).catch(() => undefined)
  return left
}

async function gather({
  opened: { brokers, endpoints, installation, ledger },
  traffic,
  sampling,
  happened,
  mishaps,
  lagLeft,
}: {
  opened: Opened
  traffic: Traffic
  sampling: Sampling
  happened: readonly Happened[]
  mishaps: readonly string[]
  lagLeft: number
}): Promise<Evidence> {
  const { prefix, group, gateway } = installation
  const written: string[] = []
  await readTopic(brokers, `${prefix}events`, ({ value }) => {
    written.push(String(readJson(String(value))['messageId']))
  })
  const deadLetters: DeadLetter[] = []
  await readTopic(brokers, `${prefix}dead-letters`, ({ headers = {} }) => {
    deadLetters.push({
      destination: String(headers['destination-id'] ?? ''),
      messageId: String(headers['message-id'] ?? ''),
      reason: String(headers['reason']),
      detail: String(headers['detail']),
    })
  })
  const parked = await readParked(brokers, installation)
  const logs = [...group.logs.values(), ...gateway.logs].flat()
  return {
    acknowledged: ledger.acknowledged,
    deliveries: endpoints.log.deliveries,
    refused: endpoints.refused,
    deadLetters,
    written,
    parked,
    deleted: ledger.deleted,
    deletes: endpoints.deletes,
    audiences: [...endpoints.audiences].map(([destination, customer]) => ({
      destination,
      wrong: traffic.audiences.wrongAt(customer),
      sentTooLate: customer.sentTooLate,
      heldTooLong: customer.heldTooLong(),
    })),
    signatures: endpoints.signatures,
    leftOut: ledger.leftOut,
    changes: group.changes,
    happened,
    backwardCommits: sampling.backwardCommits,
    mishaps,
    ownFaults: logs.filter(({ msg }) => /a fault of Sluice/.test(msg)).map((line) => JSON.stringify(line)),
    lagLeft,
  }
}

/** Returns the records of the retry topics and of the queues, each with the worker that wrote it. */
async function readParked(
  brokers: readonly string[],
  { prefix, group }: Installation,
): Promise<readonly ParkedTry[]> {
  const ownerOf = readOwners(`${prefix}events`, group.logs)
  const tenantOf = readTenants(`${prefix}events`, group.logs)
  const parked: ParkedTry[] = []
  const note = (
    state: string,
    { headers = {}, timestamp }: KafkaMessage,
    workerAt: (atMs: number) => string | undefined,
  ): void => {
    const arrivedMs = Number(timestamp)
    const worker = workerAt(arrivedMs)
    parked.push({
      key: keyOf(String(headers['destination-id']), String(headers['message-id'])),
      by: worker === undefined ? undefined : { worker, arrivedMs },
      outcome: String(headers['last-outcome'] ?? ''),
      state,
    })
  }
  // Sluice itself recognizes a record of a queue that was written twice, so no two have the same state.
  await readTopic(brokers, `${prefix}waiting`, (record, partition) => {
    const queued = String(record.headers?.['queued'])
    const tenure = tenureOf(parseQueued(queued).writer)
    // A worker that was suspended, or whose request was late, appends when another one has the unit.
    note(`waiting/${partition}/${record.offset} ${queued}`, record, (atMs) =>
      tenure === undefined ? ownerOf(partition, atMs) : tenantOf(partition, tenure.sinceMs),
    )
  })
  for (const wait of retryWaits) {
    await readTopic(brokers, `${prefix}retry.${wait}`, (record, partition) => {
      const { attempts, waits } = record.headers ?? {}
      note(`${wait}/${String(attempts)}/${String(waits)}`, record, (atMs) => ownerOf(partition, atMs))
    })
  }
  return parked
}
