import { useSignal } from '@preact/signals'
import { now } from '../data/clock.ts'
import { bytes, localTime, millis } from '../data/format.ts'
import { checksOf } from '../data/signature-check.ts'
import type { LogRecord, MessageContent, MessageRequest } from '../data/types.ts'
import { outcomeText, recordTone } from '../data/words.ts'
import { Badge } from './badge.tsx'
import { Copied } from './copied.tsx'
import { Choice } from './form.tsx'
import { Time } from './time.tsx'

type Props = { content: MessageContent; destination: string; records: readonly LogRecord[] }

/** For each URL of a destination: what it is sent, and what it answered to a try, side by side. */
export function Exchange({ content, destination, records }: Props) {
  const requests = content.requests.filter((request) => request.destination === destination)
  const body = content.events.find((event) => event.note === null)?.body ?? null
  if (requests.length === 0 || body === null)
    return <p class="quiet">There is no request to show: {whyNone(content, body)}</p>
  return (
    <>
      {requests.map((request) => (
        <div key={request.hook}>
          <div class="sides">
            <RequestSide request={request} body={body} />
            <AnswerSide
              hook={request.hook}
              tries={records.filter(({ kind, hook }) => kind === 'attempted' && hook === request.hook)}
            />
          </div>
          <SignatureCheck request={request} body={body} />
        </div>
      ))}
    </>
  )
}

function whyNone({ events }: MessageContent, body: string | null): string {
  if (body !== null) return 'the catalog no longer has this destination.'
  const note = events.find((event) => event.note !== null)?.note
  return note === null || note === undefined ? 'Kafka no longer has the message.' : `${note}.`
}

function RequestSide({ request, body: ofMessage }: RequestProps) {
  const { hook, method, origin, path, isBatched, headers } = request
  const body = request.body ?? ofMessage
  const head = [
    `${method} ${origin}/…${path}`,
    ...headers.map(({ name, value }) => `${name}: ${value ?? '…'}`),
  ]
  return (
    <section aria-label={`Request to ${hook}`}>
      <h3>
        Request <span class="quiet">{bytes(new TextEncoder().encode(body).length)}</span>
      </h3>
      <pre tabIndex={0}>{[...head, '', body].join('\n')}</pre>
      <p class="hint">
        {isBatched
          ? 'The message was one entry of the body of a batch.'
          : request.body === null
            ? 'The body is as it was sent.'
            : 'The body is what the mapping of now makes of the message.'}{' '}
        The headers are those of the catalog now; … stands for what may be secret, or differs in each try.
      </p>
    </section>
  )
}

/** `tries`: the oldest is the first. The last one is shown until somebody chooses another. */
function AnswerSide({ hook, tries }: { hook: string; tries: readonly LogRecord[] }) {
  const chosen = useSignal<number | undefined>(undefined)
  const place = chosen.value ?? tries.length - 1
  const record = tries[place]
  return (
    <section aria-label={`Answer of ${hook}`}>
      <h3>Answer</h3>
      {tries.length < 2 ? null : (
        <Choice
          label={`Try of ${tries.length}`}
          value={String(place)}
          options={tries.map((one, at) => ({ value: String(at), name: tryText(one) }))}
          onChange={(value) => {
            chosen.value = Number(value)
          }}
        />
      )}
      {record === undefined ? (
        <p class="quiet">The delivery log has no try to this URL.</p>
      ) : (
        <>
          <p>
            <Badge tone={recordTone(record)} word={outcomeText(record)} /> try {record.attempt} at{' '}
            <Time at={record.at} hasMillis />
            {record.durationMs === null ? '' : `, after ${millis(record.durationMs)}`}
          </p>
          {record.answer === null ? (
            <p class="hint">{noAnswerText(record)}</p>
          ) : (
            <pre tabIndex={0}>{record.answer}</pre>
          )}
        </>
      )}
    </section>
  )
}

function tryText(record: LogRecord): string {
  return `${record.attempt}: ${outcomeText(record)}, ${localTime(record.at, now.value, { hasMillis: true })}`
}

function noAnswerText({ status }: LogRecord): string {
  if (status === null) return 'No answer came.'
  return 'The log keeps the beginnings of answers that refuse, if attempts.answers is true.'
}

type RequestProps = { request: MessageRequest; body: string }

/** What is needed to compute the signature by hand, and to compare it with that which the endpoint got. */
function SignatureCheck({ request, body }: RequestProps) {
  // A batch is signed as a whole.
  const checks = request.isBatched ? [] : checksOf(request, request.body ?? body)
  if (checks.length === 0) return null
  return (
    <details>
      <summary>Check the signature by hand</summary>
      <p class="hint">
        Put the secret into the variable SECRET of a shell, so that it gets into no page and no history. The
        result is what the endpoint must have got in the header.
      </p>
      {checks.map(({ header, of, command }) => (
        <div key={header}>
          <p>
            <strong class="mono">{header}</strong> {of}
          </p>
          <Copied text={command} />
        </div>
      ))}
    </details>
  )
}
