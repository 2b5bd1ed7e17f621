import type { RetryHeaders } from '../retry/retry-state.ts'

/** A record for a retry topic or the dead letters. */
export type OutboundRecord = {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RetryHeaders
}

/**
 * Returns the forms of a dead letter, from the largest to the smallest. Each form leaves out more parts than
 * the form before it. The omitted parts can be read from the record that the header `origin` of the dead
 * letter names.
 */
export function formsOf(letter: OutboundRecord): readonly OutboundRecord[] {
  const withoutValue: OutboundRecord = {
    ...letter,
    value: null,
    headers: { ...letter.headers, 'value-omitted': 'the record is too large; its origin has it' },
  }
  const withoutKey: OutboundRecord = {
    ...withoutValue,
    key: null,
    headers: { ...withoutValue.headers, 'key-omitted': 'the key is too large; its origin has it' },
  }
  return [letter, withoutValue, withoutKey]
}
