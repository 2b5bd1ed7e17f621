import { type DestinationStream, type Logger, symbols } from 'pino'
import type { Outcome, OutcomeKind } from '../delivery/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import { PacedLines } from './paced-lines.ts'
import { timeMember } from './time-member.ts'

/** All lines about attempts are written here. */
export type AttemptLog = {
  /** One request of an attempt has its outcome. */
  add(delivery: Delivery, result: HookResult, durationMs: number): void
  /** Writes what waits for its second. */
  flush(): void
}

/** An attempt that has failed by an error. */
type ErrorLine = { destination: string; hook: string; outcome: OutcomeKind }

/** A dead endpoint would else fill the log of those who have switched attempts off, since they are many. */
const errorEveryMs = 1_000

/**
 * Logs one line an attempt. Without `logAttempts` only those that are an error, at most one line a second for
 * each hook and kind of error: the newest, with how many were left out.
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
  const writeError = (line: ErrorLine): void => log.error(line, errorMessages[line.outcome])
  const pacedErrors = new PacedLines<ErrorLine>({ write: writeError, everyMs: errorEveryMs })
  const logError = logAttempts
    ? writeError
    : (line: ErrorLine): void =>
        pacedErrors.add(JSON.stringify([line.outcome, line.destination, line.hook]), line)
  const logDelivered = createDeliveredLog(log)

  function add(delivery: Delivery, { hookId, outcome, verdict }: HookResult, durationMs: number): void {
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
    const line = {
      destination: delivery.destinationId,
      hook: hookId,
      messageId: delivery.messageId,
      type: delivery.kind,
      attempt: delivery.attempts,
      verdict: verdict.kind,
      outcome: outcome.kind,
      ...detailOf(outcome),
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

/** Gives what a line says of an outcome that is an error. */
function errorMessagesOf(timeoutMs: number): Partial<Record<OutcomeKind, string>> {
  return {
    timeout: `timeout: no response within ${timeoutMs} ms`,
    certificate: 'the certificate is not trusted: nothing was sent',
    address:
      'the address is not allowed: no connection was made; see delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)',
  }
}

function detailOf(outcome: Outcome): {
  status?: number
  retryAfterMs?: number
  code?: string
  address?: string
  detail?: string
} {
  const { kind: _kind, ...detail } = outcome
  return detail
}

/** What the line of an attempt tells that delivered. Never a body, a URL or a secret. */
export type AttemptLine = {
  destination: string
  hook: string
  messageId: string
  type: string
  attempt: number
  status: number
  durationMs: number
  /** Of a delivery that is traced. */
  traceId?: string | undefined
  /** The replay that it came by; '' is none, and isn't told. */
  replayJob: string
}

/**
 * Logs attempts that delivered: nearly all lines of a busy worker. The same line as
 * `log.info({ …, verdict: 'delivered', outcome: 'answer', … }, 'attempt')` for a third of its price, since
 * its members are always the same.
 */
export function createDeliveredLog(log: Logger): (line: AttemptLine) => void {
  if (!log.isLevelEnabled('info')) return () => undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- pino exports the symbol, and doesn't declare what is there
  const stream = (log as unknown as Record<symbol, DestinationStream>)[symbols.streamSym]
  const bindings = JSON.stringify(log.bindings()).slice(1, -1)
  const afterTime = bindings === '' ? ',"destination":"' : `,${bindings},"destination":"`
  return ({ destination, hook, messageId, type, attempt, status, durationMs, traceId, replayJob }) => {
    const replay = replayJob === '' ? '' : `,"replay":"${replayJob}"`
    const last = traceId === undefined ? replay : `${replay},"traceId":"${traceId}"`
    stream?.write(
      `{"level":"info"${timeMember()}${afterTime}${destination}","hook":"${hook}","messageId":"${escape(messageId)}","type":"${escape(type)}","attempt":${attempt},"verdict":"delivered","outcome":"answer","status":${status},"durationMs":${durationMs}${last},"msg":"attempt"}\n`,
    )
  }
}

/** Characters that JSON wants escaped, and lone surrogates, which have no UTF-8. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const unsafe = /["\\\u0000-\u001f\ud800-\udfff]/

function escape(text: string): string {
  return unsafe.test(text) ? JSON.stringify(text).slice(1, -1) : text
}
