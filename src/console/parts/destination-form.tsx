import type { Draft, DraftHook } from '../data/draft.ts'
import { Button, Check, Choice, Field } from './form.tsx'

type Props = {
  draft: Draft
  onChange: (draft: Draft) => void
  isNew: boolean
  /** Whether only the URLs may be changed. */
  isOnlyUrls?: boolean
  /** The ids of the sources that there are. */
  sources: readonly string[]
}

const states = [
  { value: 'on', name: 'On' },
  { value: 'paused', name: 'Paused: messages wait, for up to 30 days' },
  { value: 'off', name: 'Off: it gets no messages' },
] as const
const strategies = [
  { value: 'all', name: 'All URLs at once; one success is enough' },
  { value: 'failover', name: 'One after the other, until one accepts' },
] as const

/** The fields of a destination, as docs/catalog.md explains them. */
export function DestinationForm({ draft, onChange, isNew, isOnlyUrls = false, sources }: Props) {
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change })
  if (isOnlyUrls)
    return (
      <div class="form">
        <HookFields hooks={draft.hooks} onChange={(hooks) => set({ hooks })} />
      </div>
    )
  return (
    <div class="form">
      <Field
        label="Id"
        value={draft.id}
        onInput={(id) => set({ id })}
        readOnly={!isNew}
        required
        isMono
        hint={isNew ? 'Letters, digits and . _ - only. It stays as it is.' : undefined}
      />
      <Field
        label="Name"
        value={draft.name}
        onInput={(name) => set({ name })}
        hint="For people. Empty: the id."
      />
      <Field
        label="Sources"
        value={draft.sources}
        onInput={(text) => set({ sources: text })}
        isMono
        hint={
          sources.length === 0
            ? 'Ids, separated by commas.'
            : `Ids, separated by commas. There are: ${sources.slice(0, 20).join(', ')}${sources.length > 20 ? ', …' : ''}`
        }
      />
      <Choice label="State" value={draft.state} options={states} onChange={(state) => set({ state })} />
      <HookFields hooks={draft.hooks} onChange={(hooks) => set({ hooks })} />
      <MoreFields draft={draft} set={set} isOpen={!isNew} />
    </div>
  )
}

type MoreProps = { draft: Draft; set: (change: Partial<Draft>) => void; isOpen: boolean }

function MoreFields({ draft, set, isOpen }: MoreProps) {
  return (
    <details open={isOpen}>
      <summary>Filter, limits, labels</summary>
      <Field
        label="Types of messages"
        value={draft.types}
        onInput={(types) => set({ types })}
        isMono
        hint="identify, track, page, screen, group, alias. Empty: all."
      />
      <Field
        label="Names of track events"
        value={draft.events}
        onInput={(events) => set({ events })}
        rows={3}
        hint="One a line. Empty: all."
      />
      <Field
        label="Requests a second"
        value={draft.perSecond}
        onInput={(perSecond) => set({ perSecond })}
        hint="At most, all workers together. Empty: no limit."
      />
      <Field
        label="Deliveries in flight"
        value={draft.maxInFlight}
        onInput={(maxInFlight) => set({ maxInFlight })}
        hint="At most, in each process. Empty: 64, and Sluice learns what the endpoint takes."
      />
      <Field
        label="Pause after failing for"
        value={draft.autoPause}
        onInput={(autoPause) => set({ autoPause })}
        hint="Such as 120h, or off. Empty: as the installation is set."
      />
      <Choice
        label="With several URLs"
        value={draft.strategy}
        options={strategies}
        onChange={(strategy) => set({ strategy })}
      />
      <Check
        label="Also sign by Standard Webhooks"
        value={draft.isStandard}
        onChange={(isStandard) => set({ isStandard })}
      />
      <Field
        label="Labels"
        value={draft.labels}
        onInput={(labels) => set({ labels })}
        rows={3}
        isMono
        hint="key=value, one a line, such as tenant=acme."
      />
    </details>
  )
}

type HookProps = { hooks: readonly DraftHook[]; onChange: (hooks: readonly DraftHook[]) => void }

function HookFields({ hooks, onChange }: HookProps) {
  const set = (place: number, change: Partial<DraftHook>): void =>
    onChange(hooks.map((hook, at) => (at === place ? { ...hook, ...change } : hook)))
  return (
    <>
      {hooks.map((hook, place) => (
        <fieldset key={place}>
          <legend>{hooks.length === 1 ? 'URL' : `URL ${place + 1}`}</legend>
          <Field
            label={hooks.length === 1 ? 'Full URL' : `Full URL ${place + 1}`}
            value={hook.url}
            onInput={(url) => set(place, { url })}
            placeholder="https://api.example.com/webhook"
            required
            isMono
          />
          <details open={hook.headers !== ''}>
            <summary>Headers</summary>
            <Field
              label={hooks.length === 1 ? 'Headers' : `Headers ${place + 1}`}
              value={hook.headers}
              onInput={(headers) => set(place, { headers })}
              rows={2}
              isMono
              hint="Name: value, one a line. ${kept:…} stands for a value that stays as it is."
            />
          </details>
          {hooks.length === 1 ? null : (
            <Button onClick={() => onChange(hooks.filter((_, at) => at !== place))}>Remove this URL</Button>
          )}
        </fieldset>
      ))}
      {hooks.length >= 5 ? null : (
        <Button onClick={() => onChange([...hooks, { url: '', id: '', headers: '' }])}>
          Add another URL
        </Button>
      )}
    </>
  )
}
