import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { counted } from '../data/format.ts'
import { gatewayUrl } from '../data/gateway.ts'
import { readJson } from '../data/json.ts'
import { useLive } from '../data/live.ts'
import { route } from '../data/route.ts'
import { seesContent } from '../data/session.ts'
import type { Source, SourceEvents } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Button, Choice } from '../parts/form.tsx'
import { GatewayField } from '../parts/gateway-field.tsx'
import { Link, MessageLink } from '../parts/link.tsx'
import { Page, Part } from '../parts/page.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'
import { Copied } from '../parts/copied.tsx'
import { Records } from '../parts/records.tsx'
import { Time } from '../parts/time.tsx'
import { type Client, clients, snippetOf } from '../data/snippets.ts'

/** A source: its keys, what to paste into a service, and its last messages in the delivery log. */
export function SourcePage() {
  const id = route.value.params.get('id') ?? ''
  const { asked } = useAsk(`source-${id}`, (reading) => api.readSource(id, reading))
  const source = asked.value.value?.source
  return (
    <Page
      title={`Source ${source?.name ?? id}`}
      aside={
        <Link to="destinations" params={{ source: id }}>
          Its destinations
        </Link>
      }
    >
      <NotYet asked={asked.value} />
      {source === undefined ? null : (
        <>
          <Keys source={source} />
          <Snippets source={source} />
        </>
      )}
      {source !== undefined && source.kind !== 'audiences' && seesContent.value ? (
        <LastEvents id={id} />
      ) : null}
      <LastRecords id={id} />
    </Page>
  )
}

function Keys({ source }: { source: Source }) {
  const { writeKeys = [], serverKeys = [], kind = 'events', enabled = true } = source
  return (
    <Part title="Keys">
      <dl class="facts">
        <div>
          <dt>Kind</dt>
          <dd>{kind}</dd>
        </div>
        <div>
          <dt>State</dt>
          <dd>{enabled ? 'on' : 'off: its messages go to no destination'}</dd>
        </div>
        <div>
          <dt>Write keys</dt>
          <dd>
            {writeKeys.length === 0
              ? 'none'
              : writeKeys.map((key) => (
                  <div key={key} class="mono">
                    {key}
                  </div>
                ))}
          </dd>
        </div>
        <div>
          <dt>Server keys</dt>
          <dd>{serverKeys.length === 0 ? 'none' : `${serverKeys.length}, which are secret`}</dd>
        </div>
      </dl>
    </Part>
  )
}

function Snippets({ source }: { source: Source }) {
  const client = useSignal<Client>('curl')
  const [key = 'WRITE_KEY'] = source.writeKeys ?? []
  const text = snippetOf(client.value, { url: gatewayUrl.value, key })
  return (
    <Part title="Send to it">
      <div class="filters">
        <Choice
          label="With"
          value={client.value}
          options={clients}
          onChange={(value) => {
            client.value = value
          }}
        />
        <GatewayField />
      </div>
      <Copied text={text} />
    </Part>
  )
}

/** The last events as their producers wrote them. They are about people, so each look is written down. */
function LastEvents({ id }: { id: string }) {
  const read = useAct(() => api.readSourceEvents(id), { isReading: true })
  const found = read.done
  return (
    <Part
      title="Last events"
      aside={
        <>
          <span class="quiet">A look is written to the audit trail.</span>
          <Button onClick={() => void read.run()} isBusy={read.isBusy}>
            {found === undefined ? 'Show them' : 'Look again'}
          </Button>
        </>
      }
    >
      <ProblemNote problem={read.problem} />
      <p class="quiet" role="status">
        {found === undefined ? '' : foundText(found)}
      </p>
      {found === undefined || found.events.length === 0 ? null : (
        <ol class="timeline" aria-label="Last events, newest first">
          {found.events.map(({ origin, at, body, note }) => (
            <li key={`${origin.partition} ${origin.offset}`}>
              <div class="line">
                <Time at={at} hasMillis />
                <EventName body={body} />
                <span class="quiet mono">
                  {origin.topic} {origin.partition}:{origin.offset}
                </span>
              </div>
              {note === null ? null : <p class="quiet">{note}</p>}
              {body === null ? null : <pre tabIndex={0}>{body}</pre>}
            </li>
          ))}
        </ol>
      )}
    </Part>
  )
}

function foundText({ events, lookedAt, isAll }: SourceEvents): string {
  if (events.length > 0) return isAll ? 'These are all that Kafka has.' : ''
  return isAll
    ? 'Kafka has none. Send a message with the text above.'
    : `None is among the last ${counted(lookedAt, 'message')} of all sources. Send one with the text above.`
}

/** The type of a message, with a link to what became of it. */
function EventName({ body }: { body: string | null }) {
  const { type, event, messageId } = namesOf(body)
  const name = [type, event].filter((part) => part !== undefined).join(' ')
  return (
    <>
      {name === '' ? null : <strong>{name}</strong>}
      {messageId === undefined ? null : <MessageLink id={messageId} />}
    </>
  )
}

/** Reads what a message is called. Producers write what they like, so nothing need be there. */
function namesOf(body: string | null) {
  const given: Readonly<Record<string, unknown>> = Object(readJson(body ?? ''))
  const text = (name: string): string | undefined => {
    const value = given[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  return { type: text('type'), event: text('event'), messageId: text('messageId') }
}

function LastRecords({ id }: { id: string }) {
  const { asked, again } = useAsk(
    `last-${id}`,
    (reading) => api.searchLog({ source: id, limit: 20 }, reading),
    5_000,
  )
  useLive({ source: id }, again)
  const page = asked.value.value
  return (
    <Part title="Deliveries of the last hour">
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.records.length === 0 ? (
        <p class="quiet">Nothing came in the last hour. Send a message with the text above.</p>
      ) : (
        <Records records={page.records} hasDestination />
      )}
    </Part>
  )
}
