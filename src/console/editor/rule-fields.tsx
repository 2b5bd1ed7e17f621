import { useState } from 'preact/hooks'
import { Field } from '../parts/form.tsx'
import { LazyDetails } from '../parts/lazy-details.tsx'
import { type Draft, ruleOf } from './draft.ts'
import { RuleTrial } from './rule-trial.tsx'

type Props = { draft: Draft; set: (change: Partial<Draft>) => void }

/** What a message must meet, and how a request is made of it, with a place to try both. */
export function RuleFields({ draft, set }: Props) {
  const { condition, sample, mappings } = draft
  const [isOpen] = useState(condition !== '' || sample !== '' || mappings !== '')
  const isNoList = mappings.trim() !== '' && !Array.isArray(ruleOf(draft).mappings)
  return (
    <details open={isOpen}>
      <summary>Condition and mappings</summary>
      <Field
        label="Condition"
        value={condition}
        onInput={(text) => set({ condition: text })}
        rows={2}
        isMono
        placeholder='event == "Order Completed" && properties.total > 100'
        hint="In CEL: what must be true of a message. One that lacks a field of it, or has a text where a number is compared, does not match. Empty: each message matches."
      />
      <Field
        label="Percentage of users"
        value={sample}
        onInput={(text) => set({ sample: text })}
        isNumber
        hint="Always the same users. Empty: all of them."
      />
      <Field
        label="Mappings"
        value={mappings}
        onInput={(text) => set({ mappings: text })}
        rows={mappings === '' ? 3 : 10}
        isMono
        fault={isNoList ? 'This is no list in JSON.' : undefined}
        placeholder='[{ "body": { "text": { "@template": "{{event}} by {{userId}}" } } }]'
        hint='A list in JSON (docs/mappings.md). A value comes from a field by &#123;"@path": "$.properties.orderId"&#125;; a plain text is sent as it is. A message gets the first one whose condition it meets. Empty: it is sent as it is.'
      />
      <LazyDetails summary="Try them on messages" content={() => <RuleTrial draft={draft} />} />
    </details>
  )
}
