import type { Logger } from 'pino'
import type { HeldRecord } from '../message/held-record.ts'
import { isOwnFault, type Outcome, type OutcomeKind } from '../delivery/outcomes/outcome.ts'
import type { VerdictKind } from '../delivery/outcomes/verdict.ts'
import { type OmitReason, omitReasons } from '../pipeline/attempt.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type {
  FirstTryWay,
  NotRoutedReason,
  ParkReason,
  PipelineObserver,
  DropReason,
} from '../pipeline/pipeline-ports.ts'
import { type RuleLimit, ruleLimits } from '../pipeline/rule-time.ts'
import { formatWait } from '../retry/duration.ts'
import { createAttemptLog } from './attempt-line.ts'
import { loginObserver } from './login-lines.ts'
import { memo } from './memo.ts'
import type { WorkerMetrics } from './worker-metrics.ts'
import { PacedLines } from './paced-lines.ts'
import { RemovedDeadLetters } from './removed-dead-letters.ts'
import type { ObservedSeries } from './metric-tally.ts'

/**
 * Creates an observer that turns the pipeline's events into metrics and log lines. `attempt-line.ts` writes a
 * line for each attempt, or only for errors. Likewise, all dead letters have a line, or only some of them.
 * `flush` writes the lines that still wait because a similar line was written a moment before. Never logs a
 * body or a secret.
 */
export function createObserver({
  metrics,
  log,
  logAttempts,
  tellsNextTry = false,
  timeoutMs,
  retryLimitMs,
}: {
  metrics: WorkerMetrics
  log: Logger
  logAttempts: boolean
  /** True: a delivery that failed has a line that says when it is tried again. */
  tellsNextTry?: boolean
  timeoutMs: number
  retryLimitMs: number
}): PipelineObserver & { flush(): void } {
  const attemptLog = createAttemptLog({ log, logAttempts, timeoutMs })
  const countAttempt = attemptCounter(metrics)
  const batchMessages = metrics.batchMessages.series({})
  const omissions = new PacedLines<OmissionLine>({
    write: (line) => log.warn(line, omissionMessage),
    everyMs: omissionEveryMs,
  })
  const rules = rulesObserver(metrics, log)
  const removed = new RemovedDeadLetters(log)
  const writeDead = (line: DeadLine): void => log.warn(line, 'dead letter')
  const pacedDead = new PacedLines<DeadLine>({ write: writeDead, everyMs: deadEveryMs })
  const logDead = logAttempts
    ? writeDead
    : (line: DeadLine): void => pacedDead.add(JSON.stringify([line.reason, line.destination]), line)
  return {
    ...observeRecords(metrics, log),
    ...observeDeliveries(
      metrics,
      (line) => {
        logDead(line)
        if (line.reason === 'destination_removed' && line.destination !== undefined)
          removed.add(line.destination)
      },
      { retryLimitMs, logNextTry: tellsNextTry ? nextTryLog(log) : undefined },
    ),
    attempted(delivery, result, durationMs) {
      countAttempt(delivery, result, durationMs)
      attemptLog.add(delivery, result, durationMs)
    },
    batched: (messages) => batchMessages.observe(messages),
    omitted: omissionObserver(metrics, omissions),
    rulesTooLong: rules.rulesTooLong,
    askedForToken: loginObserver(metrics, log),
    flush() {
      attemptLog.flush()
      omissions.flush()
      rules.flush()
      pacedDead.flush()
      removed.flush()
    },
  }
}

type Observed<K extends keyof PipelineObserver> = Pick<PipelineObserver, K>

/**
 * Observes the first attempts of deliveries, the ends of deliveries, and the writing of deliveries to retry
 * topics.
 */
function observeDeliveries(
  metrics: WorkerMetrics,
  logDead: (line: DeadLine) => void,
  { retryLimitMs, logNextTry }: { retryLimitMs: number; logNextTry: NextTryLog | undefined },
): Observed<'firstTried' | 'delivered' | 'parked' | 'deadLettered' | 'dropped'> {
  const deliveries = memo((verdict: 'delivered' | 'dead_letter' | DropReason) =>
    metrics.deliveries.of({ verdict }),
  )
  const delivered = deliveries('delivered')
  const deliverySeconds = metrics.deliverySeconds.series({})
  const firstTrySeconds = firstTrySeries(metrics)
  const retryLimitUsed = metrics.retryLimitUsed.series({})
  return {
    firstTried({ firstSeenMs }, way) {
      firstTrySeconds[way].observe(Math.max(0, Date.now() - firstSeenMs) / 1000)
    },
    delivered(delivery) {
      delivered(delivery.destinationId).inc()
      deliverySeconds.observe(Math.max(0, Date.now() - delivery.firstSeenMs) / 1000)
    },
    parked(delivery: Delivery, why: ParkReason, waitMs: number) {
      const { expiresAtMs } = delivery
      if (why === 'failed') logNextTry?.(delivery, waitMs)
      metrics.parked.inc({ tier: waitMs === 0 ? 'waiting' : formatWait(waitMs), reason: why })
      if (expiresAtMs > 0) retryLimitUsed.observe(Math.max(0, 1 - (expiresAtMs - Date.now()) / retryLimitMs))
    },
    deadLettered(reason: DeadReason, detail: string, where: HeldRecord, delivery: Delivery | undefined) {
      metrics.deadLetters.inc({ reason })
      if (reason === 'internal_error') metrics.faults.inc()
      if (delivery !== undefined) deliveries('dead_letter')(delivery.destinationId).inc()
      logDead({
        reason,
        detail,
        destination: delivery?.destinationId,
        messageId: delivery?.messageId,
        attempts: delivery?.attempts,
        traceId: delivery?.trace?.traceId,
        topic: where.topic,
        partition: where.partition,
        offset: where.offset,
      })
    },
    dropped({ destinationId }: Delivery, why: DropReason) {
      deliveries(why)(destinationId).inc()
    },
  }
}

type NextTryLog = (delivery: Delivery, waitMs: number) => void

function nextTryLog(log: Logger): NextTryLog {
  return ({ destinationId, messageId, kind, attempts }, waitMs) => {
    log.info(
      {
        destination: destinationId,
        messageId,
        type: kind,
        attempt: attempts,
        nextInMs: waitMs,
        nextAt: new Date(Date.now() + waitMs).toISOString(),
      },
      'next try',
    )
  }
}

/** Observes the records from which no delivery is made. */
function observeRecords(
  metrics: WorkerMetrics,
  log: Logger,
): Observed<'notRouted' | 'unknownSource' | 'repeated' | 'failed'> {
  const repeatsDropped = metrics.repeatsDropped.series({})
  const notRouted = memo((reason: NotRoutedReason | 'unknown_source') => metrics.notRouted.series({ reason }))
  return {
    notRouted(reason: NotRoutedReason) {
      notRouted(reason).inc()
    },
    unknownSource(source: string, { topic, partition, offset }: HeldRecord) {
      notRouted('unknown_source').inc()
      log.warn(
        { source: source.slice(0, maxIdCharacters), topic, partition, offset },
        'the catalog has no such source',
      )
    },
    repeated({ topic, partition, offset }: HeldRecord, source: string, messageId: string) {
      repeatsDropped.inc()
      log.debug({ source, messageId, topic, partition, offset }, 'a repeat was dropped')
    },
    failed(error: unknown) {
      metrics.faults.inc()
      log.error({ err: error }, 'a fault of Sluice: please report it')
    },
  }
}

function attemptCounter(
  metrics: WorkerMetrics,
): (delivery: Delivery, result: HookResult, durationMs: number) => void {
  const attemptSeries = memo((outcome: OutcomeKind) => ({
    seconds: metrics.attemptSeconds.series({ outcome }),
    counted: memo((statusClass: StatusClass) =>
      memo((verdict: VerdictKind) => metrics.attempts.of({ outcome, status_class: statusClass, verdict })),
    ),
  }))
  return ({ destinationId }, { outcome, verdict }, durationMs) => {
    // No request was sent, so this doesn't count as an attempt.
    if (isOwnFault(outcome)) return
    const series = attemptSeries(outcome.kind)
    series.seconds.observe(durationMs / 1000)
    series.counted(statusClassOf(outcome))(verdict.kind)(destinationId).inc()
  }
}

function omissionObserver(
  { hooksOmitted }: WorkerMetrics,
  omissions: PacedLines<OmissionLine>,
): PipelineObserver['omitted'] {
  // Shared series are created with 0, so that the first omission is visible as an increase.
  for (const reason of omitReasons) hooksOmitted.of({ reason })
  return ({ destinationId, messageId }, hook, why) => {
    hooksOmitted.of({ reason: why }, { hook })(destinationId).inc()
    const line = { destination: destinationId, hook, reason: why, messageId }
    omissions.add(JSON.stringify([why, destinationId, hook]), line)
  }
}

/** Counts and logs that the rules of a destination take too long. */
function rulesObserver(
  { ruleWaits }: WorkerMetrics,
  log: Logger,
): Required<Observed<'rulesTooLong'>> & { flush(): void } {
  const lines: Record<RuleLimit, PacedLines<{ destination: string }>> = {
    own: new PacedLines({ write: (line) => log.warn(line, rulesMessage), everyMs: rulesEveryMs }),
    shared: new PacedLines({ write: (line) => log.warn(line, sharedRulesMessage), everyMs: rulesEveryMs }),
  }
  // Both series are there from the start, so that the first wait is visible as an increase.
  for (const limit of ruleLimits) ruleWaits.inc({ limit }, 0)
  return {
    rulesTooLong(destination, limit) {
      ruleWaits.inc({ limit })
      lines[limit].add(destination, { destination })
    },
    flush: () => ruleLimits.forEach((limit) => lines[limit].flush()),
  }
}

function firstTrySeries({ firstAttemptSeconds }: WorkerMetrics): Record<FirstTryWay, ObservedSeries> {
  return {
    direct: firstAttemptSeconds.series({ way: 'direct' }),
    paced: firstAttemptSeconds.series({ way: 'paced' }),
    parked: firstAttemptSeconds.series({ way: 'parked' }),
    replayed: firstAttemptSeconds.series({ way: 'replayed' }),
  }
}

/** A line about a dead letter. The fields about a delivery are absent if no delivery was made. */
type DeadLine = {
  reason: DeadReason
  detail: string
  destination: string | undefined
  messageId: string | undefined
  attempts: number | undefined
  traceId: string | undefined
  topic: string
  partition: number
  offset: number
}

/**
 * The shortest interval between two lines about dead letters of the same reason and destination, in
 * milliseconds, if the operator has switched off the line for each attempt. Otherwise, a paused destination
 * would fill the log.
 */
const deadEveryMs = 1_000

type OmissionLine = { destination: string; hook: string; reason: OmitReason; messageId: string }

const omissionMessage =
  'this URL never gets the message, which another URL of its destination took: it fails or asked for a pause, and had no turn in time'
const rulesMessage =
  'the conditions and mappings of a destination take more time than delivery.maxRuleTime: its messages wait'
const sharedRulesMessage =
  'the conditions and mappings of all destinations want more than half of this process, and this one takes more than its share: its messages wait'
/** The shortest interval between two lines about the same destination, in milliseconds. */
const rulesEveryMs = 10_000

/** The shortest interval between two lines about the same URL and reason, in milliseconds. */
const omissionEveryMs = 10_000

/**
 * The most characters that the id of a source can have in the catalog. An id in a header of a record may be
 * longer.
 */
const maxIdCharacters = 100

type StatusClass = 'none' | '1xx' | '2xx' | '3xx' | '4xx' | '5xx' | 'other'

const statusClasses: readonly StatusClass[] = ['other', '1xx', '2xx', '3xx', '4xx', '5xx']

function statusClassOf(outcome: Outcome): StatusClass {
  return outcome.kind === 'answer' ? (statusClasses[Math.floor(outcome.status / 100)] ?? 'other') : 'none'
}
