import { faultPlace } from './fault-in.ts'

/** The condition, with a mark at the place of its fault, as far as the server names one. */
export function FaultPlace({ condition, detail }: { condition: string; detail: string }) {
  const at = faultPlace(detail)
  if (at === undefined || at > condition.length) return null
  return (
    <pre aria-label="The place of the fault" tabIndex={0}>
      {condition.slice(0, at)}
      <mark>{condition.slice(at, at + 1) || ' '}</mark>
      {condition.slice(at + 1)}
    </pre>
  )
}
