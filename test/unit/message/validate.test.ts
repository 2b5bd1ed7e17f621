import * as fc from 'fast-check'
import { Compile } from 'typebox/compile'
import { describe, expect, test } from 'vitest'
import {
  eventSchema,
  kindChecks,
  type MessageKind,
  messageKinds,
} from '../../../src/message/message-schemas.ts'
import { validate } from '../../../src/message/validate.ts'

describe('a valid message', () => {
  test('is handed back itself, with its time', () => {
    const message = { type: 'page', userId: 'u', timestamp: '2009-11-10T23:00:00+0000', extra: 1 }
    const result = validate(message)
    expect(result).toEqual({ ok: true, message, timestampMs: Date.UTC(2009, 10, 10, 23) })
    expect(result.ok && result.message).toBe(message)
  })

  test('need not say when it happened', () => {
    expect(validate({ type: 'page', userId: 'u' })).toMatchObject({ ok: true, timestampMs: undefined })
  })
})

/** Returns the field that the schema of a kind finds at fault first. */
function firstFaulty(message: { [field: string]: unknown }): string | undefined {
  const kind = messageKinds.find((one: MessageKind) => one === message['type']) ?? 'page'
  const [error] = kindChecks[kind].Errors(message)
  return error?.keyword === 'required' ? error.params.requiredProperties[0] : error?.instancePath.slice(1)
}

test('the published schema takes a message exactly when the code does, but for the calendar', () => {
  const published = Compile(eventSchema)
  const text = fc.constantFrom<unknown>(undefined, 'x', '', null, 5, {})
  const object = fc.constantFrom<unknown>(undefined, undefined, {}, null, [], 'x')
  const message = fc
    .record({
      type: fc.constantFrom<unknown>(...messageKinds, ...messageKinds, 'Page', undefined),
      userId: text,
      anonymousId: text,
      previousId: text,
      'User ID': text,
      'Previous ID': text,
      groupId: text,
      event: text,
      traits: object,
      properties: object,
      context: object,
      integrations: object,
      messageId: fc.constantFrom<unknown>(undefined, 'm', '', null, 5, 'm'.repeat(101)),
      timestamp: fc.constantFrom<unknown>(undefined, '2024-01-01', '', null, 5, 'x', '2023-02-29'),
    })
    .map((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
  // Messages with random fields alone are nearly always refused. So half of the messages are good ones with
  // some fields replaced.
  const good = { userId: 'u', previousId: 'p', groupId: 'g', event: 'e' }
  const mixed = fc
    .tuple(
      message,
      fc.subarray(['userId', 'traits', 'context', 'messageId', 'timestamp', 'event', 'groupId']),
    )
    .map(([fields, kept]) => {
      const replaced = Object.entries(fields).filter(([name]) => kept.includes(name))
      return Object.fromEntries(Object.entries({ ...good, type: fields['type'] }).concat(replaced))
    })
  const seen = { accepted: 0, refused: 0 }
  fc.assert(
    fc.property(fc.oneof(message, mixed), (candidate) => {
      const result = validate(candidate)
      const isOffCalendar =
        !result.ok && result.reason === 'bad_timestamp' && candidate['timestamp'] === '2023-02-29'
      expect(published.Check(candidate)).toBe(result.ok || isOffCalendar)
      if (!result.ok && !isOffCalendar && result.reason !== 'unknown_type') {
        expect(result.detail).toContain(firstFaulty(candidate))
      }
      seen[result.ok ? 'accepted' : 'refused'] += 1
    }),
    { numRuns: 5000 },
  )
  expect(seen.accepted).toBeGreaterThan(200)
  expect(seen.refused).toBeGreaterThan(200)
})
