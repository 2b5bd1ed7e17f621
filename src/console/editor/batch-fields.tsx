import { useState } from 'preact/hooks'
import { Check, Choice, Field } from '../parts/form.tsx'
import type { DraftBatch } from './draft.ts'

type Props = { batch: DraftBatch; onChange: (batch: DraftBatch) => void }

const formats = [
  { value: 'json', name: 'A JSON array' },
  { value: 'ndjson', name: 'A line of JSON for each message' },
] as const

/** How messages are sent together, as docs/batches.md explains it. */
export function BatchFields({ batch, onChange }: Props) {
  const [isOpen] = useState(batch.isOn)
  const set = (change: Partial<DraftBatch>): void => onChange({ ...batch, ...change })
  return (
    <details open={isOpen}>
      <summary>Batches</summary>
      <Check
        label="Send messages together"
        value={batch.isOn}
        onChange={(isOn) => set({ isOn })}
        hint="One request has many messages, and is signed once. Limits count requests."
      />
      {batch.isOn ? (
        <>
          <Field
            label="Messages of a request"
            value={batch.maxMessages}
            onInput={(maxMessages) => set({ maxMessages })}
            isNumber
            hint="At most, 1 to 1,000. Empty: 100."
          />
          <Field
            label="Bytes of a request"
            value={batch.maxBytes}
            onInput={(maxBytes) => set({ maxBytes })}
            isNumber
            hint="At most. A larger message is sent alone. Empty: 524,288."
          />
          <Field
            label="Wait for others"
            value={batch.maxWait}
            onInput={(maxWait) => set({ maxWait })}
            hint="At most 5s. What has waited in the queue waits no longer. Empty: 200ms."
          />
          <Choice
            label="Format"
            value={batch.format}
            options={formats}
            onChange={(format) => set({ format })}
          />
        </>
      ) : null}
    </details>
  )
}
