import { percentile } from '../support/statistics.ts'
import type { Book } from './book.ts'
import { tryPatiently } from './patient-retrier.ts'
import type { Simulated } from './simulation.ts'

export type HookMeasure = {
  destinationId: string
  model: string
  messages: number
  /** The number of messages that were never posted to the hook, whatever became of them. */
  untried: number
  taken: number
  /**
   * The accepted messages, divided by the messages that the patient retrier delivers. The patient retrier has no
   * breaker, and makes every try on time. `undefined` if it delivers nothing.
   */
  deliveredRatio: number | undefined
  requestsEach: number
  /** The number of requests that a retrier without a breaker would send for each message. */
  patientRequestsEach: number
  /** The time from the append of a message to its first request. */
  firstTryMs: { p50: number; p99: number; most: number }
  inFlightMost: number
}

export type DestinationMeasure = {
  id: string
  messages: number
  hooks: readonly HookMeasure[]
  /** The number of records on retry topics for each message. */
  parkedEach: number
  dead: Readonly<Record<string, number>>
  /** The number of messages that are neither delivered nor dead letters at the end. */
  unfinished: number
}

export function measure({ destinations, ladder, startMs }: Simulated): readonly DestinationMeasure[] {
  return destinations.map(({ id, book }) => ({
    id,
    messages: book.messages,
    hooks: book.hooks.map((hook) => measureHook(id, book, hook)),
    parkedEach: book.parked / book.messages,
    dead: Object.fromEntries(book.dead),
    unfinished: book.unfinished,
  }))

  function measureHook(destinationId: string, { messages }: Book, hook: Book['hooks'][number]): HookMeasure {
    const patient = { taken: 0, requests: 0 }
    for (let message = 0; message < messages; message++) {
      const { isTaken, requests } = tryPatiently(hook.model, message, { ladder, firstMs: startMs })
      if (isTaken) patient.taken++
      patient.requests += requests
    }
    const firstTries = hook.firstTries()
    return {
      destinationId,
      model: hook.model.name,
      messages,
      untried: messages - hook.tried,
      taken: hook.taken,
      deliveredRatio: patient.taken === 0 ? undefined : hook.taken / patient.taken,
      requestsEach: hook.requests / messages,
      patientRequestsEach: patient.requests / messages,
      firstTryMs: {
        p50: percentile(firstTries, 0.5),
        p99: percentile(firstTries, 0.99),
        most: percentile(firstTries, 1),
      },
      inFlightMost: hook.inFlightMost,
    }
  }
}
