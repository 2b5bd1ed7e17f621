import { useSignal } from '@preact/signals'
import type { Answer, Problem } from '../data/answer.ts'
import { askAllAgain } from '../data/asking.ts'

export type Act<A extends readonly unknown[], T> = {
  readonly isBusy: boolean
  readonly problem: Problem | undefined
  readonly done: T | undefined
  readonly run: (...given: A) => Promise<Answer<T>>
  readonly forget: () => void
}

/**
 * Something that a button does: one at a time, with its problem or its result to show. What is shown is what
 * the server has answered. Afterwards all questions of the page are asked again, unless `isReading`.
 */
export function useAct<A extends readonly unknown[], T>(
  act: (...given: A) => Promise<Answer<T>>,
  { isReading = false } = {},
): Act<A, T> {
  const isBusy = useSignal(false)
  const problem = useSignal<Problem | undefined>(undefined)
  const done = useSignal<T | undefined>(undefined)
  const run = async (...given: A): Promise<Answer<T>> => {
    isBusy.value = true
    const answer = await act(...given)
    isBusy.value = false
    problem.value = answer.ok ? undefined : answer.problem
    if (answer.ok) done.value = answer.value
    if (!isReading) askAllAgain()
    return answer
  }
  const forget = (): void => {
    problem.value = undefined
    done.value = undefined
  }
  return { isBusy: isBusy.value, problem: problem.value, done: done.value, run, forget }
}
