import { signal } from '@preact/signals'
import { now } from './clock.ts'

/** How long a server may take to read what Kafka has stored, in milliseconds. */
const readWithinMs = 20_000

/** The destination that was added last, and until when it is waited for, in epoch milliseconds. */
const added = signal<{ readonly id: string; readonly untilMs: number } | undefined>(undefined)

/** Notes that Kafka has stored a destination, which the server that answers may not have read yet. */
export function noteStored(id: string): void {
  added.value = { id, untilMs: Date.now() + readWithinMs }
}

/** Notes that the server knows a destination. */
export function noteRead(id: string): void {
  if (added.value?.id === id) added.value = undefined
}

/** Tells whether a destination was stored just now, and the server may not have read it yet. */
export function isBeingRead(id: string): boolean {
  return added.value?.id === id && now.value < added.value.untilMs
}
