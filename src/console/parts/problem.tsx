import type { Asked } from '../data/asking.ts'
import type { Problem } from '../data/answer.ts'

/** What is wrong, and what to do: the problem details of the API, as they are. */
export function ProblemNote({ problem }: { problem: Problem | undefined }) {
  if (problem === undefined) return null
  return (
    <div class="note" data-tone="bad" role="alert">
      <strong>{problem.title}</strong>
      <p>{problem.detail}</p>
    </div>
  )
}

/** Shows that the first answer isn't there yet, or why it can't be had. Later problems are in the frame. */
export function NotYet<T>({ asked }: { asked: Asked<T> }) {
  if (asked.value !== undefined) return null
  if (asked.problem !== undefined) return <ProblemNote problem={asked.problem} />
  return (
    <p class="quiet" role="status">
      Loading…
    </p>
  )
}

/** What to show where there is nothing, and what to do next. */
export function Empty({ title, children }: { title: string; children?: preact.ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children === undefined ? null : <p>{children}</p>}
    </div>
  )
}
