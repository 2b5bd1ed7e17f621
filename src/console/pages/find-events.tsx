import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { type EventQuery, EventSearch } from '../data/event-search.ts'
import { count } from '../data/format.ts'
import { route, setParams } from '../data/route.ts'
import { Button, Choice, Field } from '../parts/form.tsx'
import { MessageLink } from '../parts/link.tsx'
import { Part } from '../parts/page.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { Time } from '../parts/time.tsx'

const times = [
  { value: '1', name: 'Last hour' },
  { value: '24', name: 'Last 24 hours' },
  { value: '168', name: 'Last week' },
  { value: '720', name: 'Last 30 days' },
] as const

/**
 * Finds messages by what they contain. Sluice reads the events for it, part by part, until all are read or
 * somebody stops it.
 */
export function FindEvents() {
  const { params } = route.value
  const conditions = useSignal(params.get('content') ?? '')
  const source = useSignal(params.get('source') ?? '')
  const hours = useSignal<(typeof times)[number]['value']>('1')
  const search = useMemo(() => new EventSearch(), [])
  useEffect(() => () => search.stop(), [search])
  const begin = (): void => {
    setParams({ content: conditions.value.trim() }, { replace: true })
    search.begin(queryOf(conditions.value, { source: source.value, hours: Number(hours.value) }))
  }
  return (
    <Part title="By content">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          begin()
        }}
      >
        <Field
          label="Field and value, one a line"
          value={conditions.value}
          rows={2}
          isMono
          placeholder="properties.orderId=4711"
          onInput={(value) => {
            conditions.value = value
          }}
        />
        <SourceField source={source} />
        <Choice
          label="Time"
          value={hours.value}
          options={times}
          onChange={(value) => {
            hours.value = value
          }}
        />
        {search.state.value === 'reading' ? (
          <Button onClick={() => search.stop()}>Stop</Button>
        ) : (
          <button type="submit" data-tone="main" disabled={conditions.value.trim() === ''}>
            Read the events
          </button>
        )}
      </form>
      <p class="hint">
        Reads what Kafka has of this time, so it also finds what the delivery log leaves out. Each look is
        written to the audit trail.
      </p>
      <ProblemNote problem={search.problem.value} />
      <Found search={search} />
    </Part>
  )
}

function SourceField({ source }: { source: Signal<string> }) {
  return (
    <Field
      label="Of source"
      value={source.value}
      isMono
      onInput={(value) => {
        source.value = value
      }}
    />
  )
}

function queryOf(text: string, { source, hours }: { source: string; hours: number }): EventQuery {
  const conditions = text
    .split('\n')
    // Whoever copies a field from JSON writes a colon.
    .map((line) => line.trim().replace(/^([\w.$-]+)\s*:\s*/, '$1='))
    .filter((line) => line !== '')
  const from = new Date(Date.now() - hours * 3_600_000).toISOString()
  return { conditions, from, ...(source.trim() === '' ? {} : { source: source.trim() }) }
}

function Found({ search }: { search: EventSearch }) {
  const state = search.state.value
  const { read, of } = search.progress.value
  if (state === 'none') return null
  const events = search.events.value
  return (
    <>
      {of === 0 ? null : (
        <p>
          <progress class="bar" value={read} max={of} aria-label="Events read" />{' '}
          <span class="number">
            {count(read)} of {count(of)} read, {count(events.length)} found
          </span>
        </p>
      )}
      <p role="status">
        {endTexts[state]}{' '}
        {state === 'paused' || state === 'stopped' ? (
          <Button onClick={() => search.goOn()}>Read on</Button>
        ) : null}
      </p>
      <ol class="timeline" aria-label="Events that were found">
        {events.map(({ origin, at, source, messageId, type, body }) => (
          <li key={`${origin.partition} ${origin.offset}`}>
            <div class="line">
              <Time at={at} hasMillis />
              <strong>{type}</strong>
              {messageId === '' ? <span class="quiet">refused</span> : <MessageLink id={messageId} />}
              <span class="quiet">{source}</span>
            </div>
            <pre tabIndex={0}>{body}</pre>
          </li>
        ))}
      </ol>
    </>
  )
}

const endTexts = {
  reading: 'Reading…',
  done: 'All events of this time were read.',
  paused: 'It has found or read enough for now.',
  stopped: 'Stopped.',
} as const
