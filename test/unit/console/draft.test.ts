import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { differenceOf, mergePatchOf } from '../../../src/console/data/difference.ts'
import { destinationOf, draftOf, noDestination } from '../../../src/console/data/draft.ts'
import type { Destination } from '../../../src/console/data/types.ts'

const whole: Destination = {
  id: 'crm',
  name: 'CRM',
  state: 'paused',
  sources: ['shop', 'app'],
  filter: { types: ['track'], events: ['Order Completed', 'Order, Refunded'], historical: false },
  sharedSecret: '${kept:2026-07-29T09:30:00.000Z:0123456789abcdef}',
  signing: { standardWebhooks: true },
  strategy: 'failover',
  maxInFlight: 8,
  rateLimit: { perSecond: 0.5, burst: 3 },
  autoPause: '120h',
  labels: { tenant: 'acme', tier: 'gold' },
  hooks: [
    {
      url: 'https://crm.example.com/hook',
      id: 'main',
      headers: { Authorization: 'Bearer a: b', 'X-A': '1' },
    },
    { url: 'https://crm.example.org/hook' },
  ],
}

describe('the form of a destination', () => {
  test('gives back a destination with every field as it was', () => {
    expect(destinationOf(draftOf(whole))).toEqual(whole)
  })

  test('adds no field to a destination with few', () => {
    const few = { id: 'a', sources: [], hooks: [{ url: 'https://a.example.com' }] }
    expect(destinationOf(draftOf(few))).toEqual(few)
  })

  test('leaves out what was emptied', () => {
    const emptied = { ...draftOf(whole), types: '', events: '', perSecond: '', labels: '', isStandard: false }
    const { filter, rateLimit, labels, signing } = destinationOf(emptied)
    expect([filter, rateLimit, labels, signing]).toEqual([
      { historical: false },
      undefined,
      undefined,
      undefined,
    ])
  })

  test('passes on what is no number, so that the server says what is wrong', () => {
    const draft = { ...draftOf(noDestination), maxInFlight: 'many' }
    expect(destinationOf(draft)).toMatchObject({ maxInFlight: 'many' })
  })
})

describe('the difference of two destinations', () => {
  test('has the fields by their paths, and lists as a whole', () => {
    const after = { ...whole, rateLimit: { perSecond: 7, burst: 3 }, sources: ['shop'], name: undefined }
    expect(differenceOf(whole, after)).toEqual([
      { field: 'name', before: 'CRM', after: null },
      { field: 'rateLimit.perSecond', before: 0.5, after: 7 },
      { field: 'sources', before: ['shop', 'app'], after: ['shop'] },
    ])
  })

  test('a value does not differ from itself, in whatever order its keys are', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(differenceOf(value, turned(value))).toEqual([])
      }),
    )
  })
})

describe('the merge patch of a change', () => {
  test('has only what differs, and null for what is removed', () => {
    const { autoPause, ...after } = { ...whole, rateLimit: { perSecond: 7 }, hooks: whole.hooks.slice(1) }
    expect(autoPause).toBe('120h')
    expect(mergePatchOf(whole, after)).toEqual({
      autoPause: null,
      rateLimit: { perSecond: 7, burst: null },
      hooks: [{ url: 'https://crm.example.org/hook' }],
    })
  })

  test('applied as RFC 7396 says, it makes the one of the other', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
    fc.assert(
      fc.property(object, object, (before, after) => {
        expect(differenceOf(applied(before, mergePatchOf(before, after)), withoutNulls(after))).toEqual([])
      }),
    )
  })
})

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Applies a merge patch, as RFC 7396 does. */
function applied(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const result = new Map(Object.entries(isObject(target) ? target : {}))
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name)
    else result.set(name, applied(result.get(name), value))
  }
  return Object.fromEntries(result)
}

/** A merge patch can't make a field null, and destinations have none. */
function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (inner === null ? [] : [[name, withoutNulls(inner)]])),
  )
}

/** Returns the same JSON with the keys of each object in the opposite order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, turned(inner)]),
  )
}
