import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { route } from '../data/route.ts'
import type { Source } from '../data/types.ts'
import { Choice, Field } from '../parts/form.tsx'
import { Link } from '../parts/link.tsx'
import { Page, Part } from '../parts/page.tsx'
import { NotYet } from '../parts/problem.tsx'
import { Copied } from '../parts/copied.tsx'
import { Records } from '../parts/records.tsx'
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
  const url = useSignal(`${location.protocol}//${location.hostname}:8080`)
  const [key = 'WRITE_KEY'] = source.writeKeys ?? []
  const text = snippetOf(client.value, { url: url.value, key })
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
        <Field
          label="URL of the gateway"
          value={url.value}
          isMono
          onInput={(value) => {
            url.value = value
          }}
        />
      </div>
      <Copied text={text} />
    </Part>
  )
}

function LastRecords({ id }: { id: string }) {
  const { asked } = useAsk(
    `last-${id}`,
    (reading) => api.searchLog({ source: id, limit: 20 }, reading),
    3_000,
  )
  const page = asked.value.value
  return (
    <Part title="Last hour">
      <NotYet asked={asked.value} />
      {page === undefined ? null : page.records.length === 0 ? (
        <p class="quiet">Nothing came in the last hour. Send a message with the text above.</p>
      ) : (
        <Records records={page.records} hasDestination />
      )}
    </Part>
  )
}
