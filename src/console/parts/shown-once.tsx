import { Copied } from './copied.tsx'

/** A secret that no later answer has. */
export function ShownOnce({ name, value }: { name: string; value: string }) {
  return (
    <div class="note" data-tone="good" role="status">
      <strong>{name} is shown this once. Keep it now.</strong>
      <Copied text={value} />
    </div>
  )
}
