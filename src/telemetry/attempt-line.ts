import { type DestinationStream, type Logger, symbols } from 'pino'
import type { Outcome, OutcomeKind } from '../delivery/outcomes/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import { PacedLines } from './paced-lines.ts'
import { timeMember } from './time-member.ts'

/** The writer of all log lines about attempts. */
export type AttemptLog = {
  /** Logs the outcome of one request of an attempt. */
  add(delivery: LoggedDelivery, result: HookResult, durationMs: number): void
  /** Writes the lines that wait until a second has passed since the previous line. */
  flush(): void
}

/** The fields of a delivery that its lines have. */
type LoggedDelivery = Pick<
  Delivery,
  'destinationId' | 'messageId' | 'kind' | 'attempts' | 'trace' | 'replayJob'
> & {
  /** Where its hooks are. It may be absent once the catalog has changed. */
  readonly endpoint?:
    | { readonly hooks: readonly { readonly id: string; readonly target: Origin }[] }
    | undefined
}

type Origin = { readonly origin: string; readonly timeoutMs?: number | undefined }

/** The line about an attempt whose outcome is an error. */
type ErrorLine = {
  destination: string
  hook: string
  outcome: OutcomeKind
  /** The deadline of the destination itself, after a timeout. */
  timeoutMs?: number
}

/**
 * The shortest interval between error lines of one hook, in milliseconds. Without this interval, a dead
 * endpoint would fill the log, even if the operator has switched off the line for each attempt in order to
 * log less.
 */
const errorEveryMs = 1_000

/**
 * Creates a log with one line per attempt. Without `logAttempts`, logs only errors, at most one line per
 * second for each hook and kind of error. Such a line is about the newest error, and says how many errors
 * were left out since the previous line.
 */
export function createAttemptLog({
  log,
  logAttempts,
  timeoutMs,
}: {
  log: Logger
  logAttempts: boolean
  timeoutMs: number
}): AttemptLog {
  const errorMessages = errorMessagesOf(timeoutMs)
  const writeError = (line: ErrorLine): void => log.error(line, messageOf(line, errorMessages))
  const pacedErrors = new PacedLines<ErrorLine>({ write: writeError, everyMs: errorEveryMs })
  const logError = logAttempts
    ? writeError
    : (line: ErrorLine): void => pacedErrors.add(subjectOf(line), line)
  const logDelivered = createDeliveredLog(log)

  function add(delivery: LoggedDelivery, { hookId, outcome, verdict }: HookResult, durationMs: number): void {
    const isError = errorMessages[outcome.kind] !== undefined
    if (!logAttempts && !isError) return
    const roundMs = Math.round(durationMs * 10) / 10
    if (verdict.kind === 'delivered' && outcome.kind === 'answer') {
      logDelivered({
        destination: delivery.destinationId,
        hook: hookId,
        messageId: delivery.messageId,
        type: delivery.kind,
        attempt: delivery.attempts,
        status: outcome.status,
        durationMs: roundMs,
        traceId: delivery.trace?.traceId,
        replayJob: delivery.replayJob,
      })
      return
    }
    const target = delivery.endpoint?.hooks.find(({ id }) => id === hookId)?.target
    const host = target?.origin
    const ownMs = outcome.kind === 'timeout' ? target?.timeoutMs : undefined
    const line = {
      destination: delivery.destinationId,
      hook: hookId,
      ...(host !== undefined && { host }),
      messageId: delivery.messageId,
      type: delivery.kind,
      attempt: delivery.attempts,
      verdict: verdict.kind,
      outcome: outcome.kind,
      ...detailOf(outcome),
      ...(ownMs !== undefined && ownMs < timeoutMs && { timeoutMs: ownMs }),
      durationMs: roundMs,
      traceId: delivery.trace?.traceId,
      ...(delivery.replayJob !== '' && { replay: delivery.replayJob }),
    }
    if (isError) logError(line)
    else if (outcome.kind === 'proxy') log.warn(line, 'the proxy failed: no request was sent')
    else log.warn(line, 'attempt')
  }

  return { add, flush: () => pacedErrors.flush() }
}

/** Returns the key of a line for `PacedLines`. Lines about a lack of files share one key for all hooks. */
function subjectOf({ outcome, destination, hook }: ErrorLine): string {
  return outcome === 'files' ? outcome : JSON.stringify([outcome, destination, hook])
}

function timeoutMessage(timeoutMs: number): string {
  return `timeout: no response within ${timeoutMs} ms`
}

/** Returns the message of a line. A destination may have a deadline of its own. */
function messageOf(
  { outcome, timeoutMs }: ErrorLine,
  messages: ReturnType<typeof errorMessagesOf>,
): string | undefined {
  return timeoutMs === undefined ? messages[outcome] : timeoutMessage(timeoutMs)
}

/** Returns the log message of each kind of outcome that is an error. */
function errorMessagesOf(timeoutMs: number): Partial<Record<OutcomeKind, string>> {
  return {
    timeout: timeoutMessage(timeoutMs),
    files:
      'no request was sent, because no more files can be opened: raise the limit of open files (ulimit -n)',
    certificate: 'the certificate is not trusted: nothing was sent',
    address:
      'the address is not allowed: no connection was made; see delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)',
  }
}

type OutcomeDetail = {
  status?: number
  retryAfterMs?: number
  code?: string
  address?: string
  detail?: string
}

/**
 * Returns the details of an outcome. The kept part of an answer isn't one of them: no body is ever logged.
 */
function detailOf(outcome: Outcome): OutcomeDetail {
  if (outcome.kind === 'answer') {
    const { status, retryAfterMs } = outcome
    return retryAfterMs === undefined ? { status } : { status, retryAfterMs }
  }
  const { kind: _kind, ...detail } = outcome
  return detail
}

/** The values of a line about an attempt that delivered. None of them is a body, a URL or a secret. */
export type AttemptLine = {
  destination: string
  hook: string
  messageId: string
  type: string
  attempt: number
  status: number
  durationMs: number
  /** The id of the trace, if the delivery is traced. */
  traceId?: string | undefined
  /**
   * The id of the replay that sent the delivery. It is '' if no replay sent the delivery. The line then
   * mentions no replay.
   */
  replayJob: string
}

/**
 * Creates a log for attempts that delivered. Nearly all lines of a busy worker are about such attempts. A
 * call writes the same line as `log.info({ …, verdict: 'delivered', outcome: 'answer', … }, 'attempt')` at a
 * third of the cost. This is possible because the line always has the same members.
 */
export function createDeliveredLog(log: Logger): (line: AttemptLine) => void {
  if (!log.isLevelEnabled('info')) return () => undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- pino exports the symbol, and doesn't declare what is there
  const stream = (log as unknown as Record<symbol, DestinationStream>)[symbols.streamSym]
  const bindings = JSON.stringify(log.bindings()).slice(1, -1)
  const afterTime = bindings === '' ? ',"destination":"' : `,${bindings},"destination":"`
  const shared = new SharedTexts(afterTime)
  return (line) => stream?.write(`${shared.head(line)}${escape(line.messageId)}${shared.tail(line)}`)
}

/**
 * The texts before and after the id of a message in lines about attempts that delivered. The lines of a batch
 * differ in little more than this id, so the texts of the last line are kept.
 */
class SharedTexts {
  readonly #afterTime: string
  #head = { time: '', destination: '', hook: '', text: '' }
  #tail = { of: emptyLine, text: '' }

  constructor(afterTime: string) {
    this.#afterTime = afterTime
  }

  head({ destination, hook }: AttemptLine): string {
    const time = timeMember()
    const last = this.#head
    if (time === last.time && destination === last.destination && hook === last.hook) return last.text
    const text = `{"level":"info"${time}${this.#afterTime}${destination}","hook":"${hook}","messageId":"`
    this.#head = { time, destination, hook, text }
    return text
  }

  tail(line: AttemptLine): string {
    if (!hasSameTail(line, this.#tail.of)) this.#tail = { of: line, text: tailOf(line) }
    return this.#tail.text
  }
}

const emptyLine: AttemptLine = {
  destination: '',
  hook: '',
  messageId: '',
  type: '',
  attempt: 0,
  status: 0,
  durationMs: -1,
  replayJob: '',
}

function hasSameTail(one: AttemptLine, other: AttemptLine): boolean {
  return (
    one.durationMs === other.durationMs &&
    one.type === other.type &&
    one.attempt === other.attempt &&
    one.status === other.status &&
    one.traceId === other.traceId &&
    one.replayJob === other.replayJob
  )
}

function tailOf({ type, attempt, status, durationMs, traceId, replayJob }: AttemptLine): string {
  const replay = replayJob === '' ? '' : `,"replay":"${replayJob}"`
  const last = traceId === undefined ? replay : `${replay},"traceId":"${traceId}"`
  return `","type":"${escape(type)}","attempt":${attempt},"verdict":"delivered","outcome":"answer","status":${status},"durationMs":${durationMs}${last},"msg":"attempt"}\n`
}

/**
 * Matches a character that JSON has to escape. Also matches a surrogate, because UTF-8 can't encode a lone
 * surrogate.
 */
// oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
const unsafe = /["\\\u0000-\u001f\ud800-\udfff]/

function escape(text: string): string {
  return unsafe.test(text) ? JSON.stringify(text).slice(1, -1) : text
}
