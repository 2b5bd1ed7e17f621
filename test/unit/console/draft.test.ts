import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { differenceOf, mergePatchOf } from '../../../src/console/data/difference.ts'
import { draftHookOf, hookOf, patchHooksOf, urlPatchOf } from '../../../src/console/editor/draft-hook.ts'
import { destinationOf, draftOf, noDestination } from '../../../src/console/editor/draft.ts'
import { faultPlace } from '../../../src/console/editor/fault-in.ts'
import { keptSince } from '../../../src/console/editor/kept.ts'
import { maskedOf } from '../../../src/console/editor/masked.ts'
import { urlWith } from '../../../src/console/editor/url-with.ts'
import type { Destination } from '../../../src/console/data/types.ts'

const kept = '${kept:2026-07-29T09:30:00.000Z:0123456789abcdef}'

const whole: Destination = {
  id: 'crm',
  name: 'CRM',
  state: 'paused',
  sources: ['shop', 'app'],
  filter: {
    types: ['track'],
    events: ['Order Completed', 'Order, Refunded'],
    historical: false,
    condition: 'properties.total > 20',
    sample: { percent: 12.5 },
  },
  mappings: [{ name: 'all', body: { text: { '@template': '{{event}}' } } }],
  sharedSecret: kept,
  signing: { standardWebhooks: true },
  strategy: 'failover',
  maxInFlight: 8,
  rateLimit: { perSecond: 0.5, burst: 3 },
  timeout: '2s',
  autoPause: '120h',
  batch: { maxMessages: 50, maxBytes: 65_536, maxWait: '50ms', format: 'ndjson' },
  labels: { tenant: 'acme', tier: 'gold' },
  hooks: [
    {
      url: 'https://crm.example.com/hook',
      id: 'main',
      headers: { 'X-Key': 'a: b', 'X-A': '1' },
      login: {
        kind: 'oauth2',
        tokenUrl: 'https://login.example.com/token',
        clientId: 'sluice',
        clientSecret: kept,
        scope: 'a b',
        audience: 'crm',
        clientAuth: 'basic',
      },
      tls: { certificate: kept, key: kept, ca: kept },
    },
    { url: 'https://crm.example.org/hook', login: { kind: 'basic', username: kept } },
  ],
}

describe('the form of a destination', () => {
  test('gives back a destination with every field as it was', () => {
    expect(destinationOf(draftOf(whole))).toEqual(whole)
  })

  test('adds no field to a destination with few', () => {
    const few = { id: 'a', sources: [], hooks: [{ url: 'https://a.example.com' }] }
    expect(destinationOf(draftOf(few))).toEqual(few)
    const batched = { ...few, batch: {} }
    expect(destinationOf(draftOf(batched))).toEqual(batched)
  })

  test('leaves out what was emptied', () => {
    const draft = draftOf(whole)
    const emptied = {
      ...draft,
      types: '',
      events: '',
      condition: ' ',
      sample: '',
      mappings: '',
      perSecond: '',
      labels: '',
      timeout: '',
      isStandard: false,
      batch: { ...draft.batch, isOn: false },
      hooks: draft.hooks.map((hook) => ({
        ...hook,
        login: 'none' as const,
        certificate: '',
        key: '',
        ca: '',
      })),
    }
    const { filter, rateLimit, labels, signing, mappings, timeout, batch, hooks } = destinationOf(emptied)
    expect([filter, rateLimit, labels, signing, mappings, timeout, batch]).toEqual([
      { historical: false },
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(hooks[0]).not.toHaveProperty('login')
    expect(hooks[0]).not.toHaveProperty('tls')
  })

  test('passes on what is no number, so that the server says what is wrong', () => {
    const draft = { ...draftOf(noDestination), maxInFlight: 'many', sample: 'half', mappings: '[{' }
    expect(destinationOf(draft)).toMatchObject({
      maxInFlight: 'many',
      filter: { sample: { percent: 'half' } },
      mappings: '[{',
    })
  })

  test('writes another kind of login with its own fields only', () => {
    const [hook] = draftOf(whole).hooks
    if (hook === undefined) throw new Error('there is no hook')
    const basic = hookOf({ ...hook, login: 'basic', username: ' key ', password: '' })
    expect(basic.login).toEqual({ kind: 'basic', username: ' key ' })
    const added = hookOf({
      ...draftHookOf({ url: 'https://b.example.com' }),
      login: 'oauth2',
      tokenUrl: ' https://login.example.com/token ',
      clientId: 'me',
      clientSecret: 's',
      clientAuth: 'post',
    })
    expect(added.login).toEqual({
      kind: 'oauth2',
      tokenUrl: 'https://login.example.com/token',
      clientId: 'me',
      clientSecret: 's',
      clientAuth: 'post',
    })
  })

  test('shows in no difference a secret that somebody has typed, and says since when one is set', () => {
    const [first, second] = whole.hooks
    const typed = {
      ...whole,
      sharedSecret: 'S3CRET-1',
      hooks: [
        { ...first, url: first?.url ?? '', tls: { certificate: 'S3CRET-2', key: 'S3CRET-3', ca: kept } },
        {
          ...second,
          url: second?.url ?? '',
          login: { kind: 'basic' as const, username: 'S3CRET-4', password: 'S3CRET-5' },
        },
      ],
    }
    const fields = differenceOf(whole, maskedOf(typed))
    expect(fields.map(({ field }) => field)).toEqual(['hooks', 'sharedSecret'])
    expect(JSON.stringify(fields)).not.toContain('S3CRET')
    expect(maskedOf(whole)).toEqual(whole)
    expect([keptSince(kept), keptSince('S3CRET')]).toEqual(['2026-07-29T09:30:00.000Z', undefined])
  })

  test('makes of edited URLs a patch that has nothing else', () => {
    const before = [{ url: 'https://a.example.com/', headers: { 'X-A': kept } }, ...whole.hooks]
    const after = [{ ...before[0], url: 'https://a.example.com/v2' }, ...whole.hooks]
    expect(urlPatchOf(before, after, ['a1b2', 'main', 'c3d4'])).toEqual({
      hooks: [{ id: 'a1b2', url: 'https://a.example.com/v2' }],
    })
    expect(urlPatchOf(before, before, [])).toEqual({ hooks: [] })
  })

  test('says of each field of a URL that is removed that it is', () => {
    const [main, other] = whole.hooks
    const { login, tls, ...left } = { ...main, headers: { 'X-A': '2' } }
    expect([login, tls].every((field) => field !== undefined)).toBe(true)
    expect(patchHooksOf(whole.hooks, [{ ...left, url: main?.url ?? '' }])).toEqual([
      { ...left, headers: { 'X-Key': null, 'X-A': '2' }, login: null, tls: null },
    ])
    const same = other === undefined ? [] : [other]
    expect(patchHooksOf(same, same)).toEqual(same)
  })

  test.each([
    ['https://a.example.com', '', 'https://a.example.com'],
    ['https://a.example.com/', '/u/1', 'https://a.example.com/u/1'],
    ['https://a.example.com/hook?k=1', '/u?x=2', 'https://a.example.com/hook/u?k=1&x=2'],
    ['', '/u', '/u'],
  ])('shows %j with the path %j of a mapping as it is called', (url, added, called) => {
    expect(urlWith(url, added)).toBe(called)
  })
})

test.each([
  ["filter.condition can't be read: unexpected token at character 9: write CEL.", 8],
  ['filter.events has too few entries: add one. filter.condition has a fault: no x at character 1: y.', 0],
  ['filter.condition is of the type int: write CEL. mappings[0].condition is at character 3: x.', undefined],
  ['mappings[0].condition has a fault at character 3: x.', undefined],
])('the place of the fault that %j tells is %j', (detail, place) => {
  expect(faultPlace(detail)).toBe(place)
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
      hooks: whole.hooks.slice(1),
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
