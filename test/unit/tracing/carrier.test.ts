import { ROOT_CONTEXT, trace } from '@opentelemetry/api'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { contextIn, headersOf } from '../../../src/tracing/carrier.ts'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('whatever producers and clients send, it is a trace or none, and what is passed on is short', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 6_000 }),
    fc.constant(traceparent),
    fc.stringMatching(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/),
  )
  const value = fc.oneof(
    text,
    text.map((one) => Buffer.from(one)),
    fc.array(text, { maxLength: 3 }),
    fc.constantFrom(null, undefined, 7),
  )
  const headers = fc.record({ traceparent: value, tracestate: value }, { requiredKeys: [] })
  fc.assert(
    fc.property(headers, (given) => {
      const passedOn = headersOf(contextIn(given))
      for (const [name, one] of Object.entries(passedOn)) {
        expect(['traceparent', 'tracestate']).toContain(name)
        expect(one).toMatch(
          name === 'traceparent' ? /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2,3}$/ : /^.{1,512}$/,
        )
      }
    }),
    { numRuns: 2_000 },
  )
})

test.each<[string, unknown]>([
  ['text', traceparent],
  ['bytes', Buffer.from(traceparent)],
  ['the first of several', [Buffer.from(traceparent), Buffer.from('other')]],
])('a traceparent as %s is read', (_what, given) => {
  const context = contextIn({ traceparent: given })
  expect(trace.getSpanContext(context)).toMatchObject({
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    isRemote: true,
  })
  expect(headersOf(context)).toEqual({ traceparent })
})

test.each([
  '',
  '00-00000000000000000000000000000000-b7ad6b7169203331-01',
  '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
  'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  '00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01',
  `${traceparent}-more`,
])('%j names no trace', (given) => {
  expect(contextIn({ traceparent: given, tracestate: 'a=b' })).toBe(ROOT_CONTEXT)
})
