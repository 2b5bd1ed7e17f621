import type { Config } from '../../config/schema.ts'
import { adviceOn } from '../../delivery/advice.ts'
import type { Outcome } from '../../delivery/outcomes/outcome.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { plain } from '../../delivery-log/lines.ts'
import { explainReason } from '../../message/dead-letter-explained.ts'

/** What a person can try if the log has nothing of a message. */
export const notFoundNotes: readonly string[] = [
  'If it is the value of a field and no messageId: `sluice log scan properties.orderId=VALUE --from 24h` reads Kafka for it. attempts.index (SLUICE_ATTEMPTS_INDEX=properties.orderId) has `sluice log find` find such values from then on.',
  'attempts.successes (SLUICE_ATTEMPTS_SUCCESSES) sets how many successes in a second the log keeps.',
]

/**
 * Returns what to do about the deliveries of a message that failed, and which setting would have kept more.
 * `records` are those of the message, with the oldest first.
 */
export function notesOn(
  records: readonly LogRecord[],
  { delivery: { timeoutMs } }: Pick<Config, 'delivery'>,
): string[] {
  const byDestination = Map.groupBy(records, ({ destination }) => destination)
  const advice = [...byDestination].flatMap(([destination, ofIt]) =>
    destination === '' ? [] : adviceOf(destination, ofIt, timeoutMs),
  )
  const isAnswerMissing = records.some(
    ({ kind, verdict, outcome, answer }) =>
      kind === 'attempted' && verdict !== 'delivered' && outcome === 'answer' && answer === '',
  )
  const setting =
    'The answers are not kept, or were empty: attempts.answers (SLUICE_ATTEMPTS_ANSWERS=true) has workers keep the beginning of each answer that is no success.'
  return [...advice, ...(isAnswerMissing ? [setting] : [])]
}

function adviceOf(destination: string, records: readonly LogRecord[], timeoutMs: number): string[] {
  const dead = records.findLast(({ kind }) => kind === 'dead')
  const last = records.findLast(({ kind }) => kind === 'attempted')
  const outcome = last && last.verdict !== 'delivered' ? outcomeOf(last) : undefined
  const advice = outcome && adviceOn(outcome, timeoutMs)
  const explained = advice ?? (dead && explanationOf(dead))
  const about = explained === undefined ? [] : [`${plain(destination)}: ${explained}`]
  if (dead === undefined) return about
  const messageId = records[0]?.messageId ?? ''
  const again = /^[\w.-]+$/.test(messageId) ? messageId : `'${messageId.replaceAll("'", String.raw`'\''`)}'`
  return [
    ...about,
    `${plain(destination)}: it is a dead letter. To send it again: sluice replay dead-letters --destination ${plain(destination)} --message-id ${plain(again)}`,
  ]
}

/** Says what became of a delivery without a request that failed. */
function explanationOf({ reason }: LogRecord): string {
  const { means, todo } = explainReason(reason)
  return `${means} ${todo}`
}

/** Returns the outcome of a request as far as the log has it. */
function outcomeOf({ outcome, status, error }: LogRecord): Outcome | undefined {
  switch (outcome) {
    case 'answer':
      return { kind: 'answer', status }
    case 'timeout':
      return { kind: 'timeout' }
    case 'connection':
    case 'dns':
    case 'files':
    case 'certificate':
      return { kind: outcome, code: error }
    case 'proxy':
      return { kind: 'proxy', code: error, isDown: false }
    case 'address':
      return { kind: 'address', address: error }
    case 'login':
      return { kind: 'login', detail: error }
    case 'request':
      return { kind: 'request', detail: '' }
    case '':
      return undefined
  }
}
