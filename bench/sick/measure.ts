import { percentile } from '../support/statistics.ts'
import type { Book } from './book.ts'
import { tryPatiently } from './patient-retrier.ts'
import type { Simulated } from './simulation.ts'

/** What a hook got of what it should. */
export type HookMeasure = {
  destinationId: string
  model: string
  messages: number
  /** Messages that were never posted to it, however they ended. */
  untried: number
  taken: number
  /** Of what a retrier takes to it that makes every try on time; nothing where that is nothing. */
  deliveredRatio: number | undefined
  requestsEach: number
  /** The same of that retrier. */
  patientRequestsEach: number
  /** From a message's append to its first request. */
  firstTryMs: { p50: number; p99: number; most: number }
  inFlightMost: number
}

/** What became of the messages of a destination. */
export type DestinationMeasure = {
  id: string
  messages: number
  hooks: readonly HookMeasure[]
  /** Records on retry topics, for each message. */
  parkedEach: number
  dead: Readonly<Record<string, number>>
  /** Neither delivered nor dead letters at the end. */
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
