import { count } from '../data/format.ts'
import { prettyJson } from '../data/json.ts'
import type { Previewed } from '../data/types.ts'
import { triedWords } from '../data/words.ts'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/form.tsx'
import { LazyDetails } from '../parts/lazy-details.tsx'
import { urlWith } from './url-with.ts'

type Props = {
  name: string
  results: readonly Previewed[]
  /** The URL to which the path of a mapping is added. */
  url: string
  /** Called with a message that somebody wants to go on with. */
  onTake?: (message: string) => void
}

/** What a destination would do with messages: which match, why others don't, and the requests. */
export function TriedMessages({ name, results, url, onTake }: Props) {
  return (
    <>
      <p role="status">{summaryOf(results)}</p>
      <ol class="timeline" aria-label={name}>
        {results.map((one, place) => (
          <Tried
            key={place}
            one={one}
            url={url}
            isOpenFirst={results.length === 1}
            {...(onTake === undefined ? {} : { onTake })}
          />
        ))}
      </ol>
    </>
  )
}

function summaryOf(results: readonly Previewed[]): string {
  if (results.length === 0) return 'Kafka has no message of it. Send one, or try the message above.'
  const matching = results.filter(({ result }) => result === 'passes').length
  const others = [...Map.groupBy(results, ({ result }) => result)]
    .filter(([result]) => result !== 'passes')
    .map(([result, some]) => `${triedWords[result].word}: ${count(some.length)}`)
  return `${count(matching)} of ${count(results.length)} match${others.length === 0 ? '' : `; ${others.join(', ')}`}.`
}

type TriedProps = Pick<Props, 'url' | 'onTake'> & { one: Previewed; isOpenFirst: boolean }

function Tried({ one, url, isOpenFirst, onTake }: TriedProps) {
  const { messageId, message, result, detail, mapping } = one
  return (
    <li data-tone={triedWords[result].tone}>
      <div class="line">
        <Badge {...triedWords[result]} />
        {messageId === null ? null : <span class="mono">{messageId}</span>}
        {mapping === null ? null : (
          <span>
            by mapping {mapping.place + 1}
            {mapping.name === null ? '' : `: ${mapping.name}`}
          </span>
        )}
        {detail === null ? null : <span class="grow">{detail}</span>}
      </div>
      {message === null ? null : (
        <LazyDetails
          summary="Message and request"
          isOpenFirst={isOpenFirst}
          content={() => (
            <>
              <Sides one={one} url={url} />
              {onTake === undefined ? null : (
                <Button onClick={() => onTake(message)}>Try this message above</Button>
              )}
            </>
          )}
        />
      )}
    </li>
  )
}

function Sides({ one: { message, request }, url }: { one: Previewed; url: string }) {
  return (
    <div class="sides">
      <section aria-label="Message">
        <strong>Message</strong>
        <pre tabIndex={0}>{prettyJson(message ?? '')}</pre>
      </section>
      <section aria-label="Request">
        <strong>Request</strong>
        {request === null ? (
          <p class="quiet">It is not sent.</p>
        ) : (
          <pre tabIndex={0}>
            {[
              `${request.method} ${urlWith(url, request.path)}`,
              ...request.headers.map(({ name, value }) => `${name}: ${value}`),
              '',
              prettyJson(request.body),
            ].join('\n')}
          </pre>
        )}
      </section>
    </div>
  )
}
