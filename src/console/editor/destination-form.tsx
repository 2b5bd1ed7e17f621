import { Check, Choice, Field } from '../parts/form.tsx'
import { BatchFields } from './batch-fields.tsx'
import type { Draft } from './draft.ts'
import { HookFields } from './hook-fields.tsx'
import { RuleFields } from './rule-fields.tsx'

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
        <HookFields hooks={draft.hooks} isOnlyUrls onChange={(hooks) => set({ hooks })} />
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
      <HookFields hooks={draft.hooks} isOnlyUrls={false} onChange={(hooks) => set({ hooks })} />
      <MoreFields draft={draft} set={set} isOpen={!isNew} />
      <RuleFields draft={draft} set={set} />
      <BatchFields batch={draft.batch} onChange={(batch) => set({ batch })} />
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
      <LimitFields draft={draft} set={set} />
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

function LimitFields({ draft, set }: Pick<MoreProps, 'draft' | 'set'>) {
  return (
    <>
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
        label="Answer within"
        value={draft.timeout}
        onInput={(timeout) => set({ timeout })}
        hint="Such as 2s. Empty: as the installation is set."
      />
      <Field
        label="Pause after failing for"
        value={draft.autoPause}
        onInput={(autoPause) => set({ autoPause })}
        hint="Such as 120h, or off. Empty: as the installation is set."
      />
    </>
  )
}
