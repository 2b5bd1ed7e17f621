import { describe, expect, test } from 'vitest'
import { createCatalog, type Source } from '../../../../src/catalog/catalog.ts'
import { Sources } from '../../../../src/gateway/calls/sources.ts'

function source(id: string, more: Partial<Source> = {}): Source {
  return {
    id,
    name: id,
    kind: 'events',
    enabled: true,
    writeKeys: [`${id}-key`],
    serverKeys: [],
    maxPerSecond: undefined,
    ...more,
  }
}

function follow(...first: Source[]) {
  let catalog = createCatalog(first, [], '1')
  const clock = { nowMs: 0 }
  const sources = new Sources(
    () => catalog,
    () => clock.nowMs,
  )
  return {
    sources,
    clock,
    edit: (...next: Source[]) => {
      catalog = createCatalog(next, [], '2')
    },
  }
}

describe('sources by their keys', () => {
  test('are found by the first key that is known', () => {
    const { sources } = follow(source('a'), source('b'))
    expect(sources.withWriteKey(['b-key'])?.id).toBe('b')
    expect(sources.withWriteKey(['unknown', 'a-key'])?.id).toBe('a')
    expect(sources.withWriteKey([])).toBeUndefined()
    expect(sources.withWriteKey(['A-KEY'])).toBeUndefined()
  })

  test('follow the catalog', () => {
    const { sources, edit } = follow(source('a'))
    expect(sources.withWriteKey(['a-key'])?.id).toBe('a')
    edit(source('a', { writeKeys: ['new'] }))
    expect(sources.withWriteKey(['a-key'])).toBeUndefined()
    expect(sources.withWriteKey(['new'])?.id).toBe('a')
  })

  test('share a server key, which is no write key, nor is a write key a server key', () => {
    const serverKeys = ['0123456789abcdef']
    const { sources } = follow(source('a', { serverKeys }), source('b', { serverKeys }), source('c'))
    expect(sources.withServerKey(serverKeys).map(({ id }) => id)).toEqual(['a', 'b'])
    expect(sources.withServerKey(['a-key'])).toEqual([])
    expect(sources.withWriteKey(serverKeys)).toBeUndefined()
  })
})

describe('a source', () => {
  test('without a rate may send any number', () => {
    const { sources } = follow()
    expect(sources.take(source('a'), 1_000_000)).toBe(0)
  })

  test('that is over its rate is told how long, and costs others nothing', () => {
    const { sources, clock } = follow()
    const slow = source('slow', { maxPerSecond: 10 })
    const other = source('other', { maxPerSecond: 10 })
    expect(sources.take(slow, 20)).toBe(0)
    expect(sources.take(slow, 1)).toBe(1_100)
    expect(sources.take(other, 1)).toBe(0)
    clock.nowMs = 1_100
    expect(sources.take(slow, 1)).toBe(0)
  })

  test('may ask without counting, and gets back what was counted for nothing', () => {
    const { sources } = follow()
    const slow = source('slow', { maxPerSecond: 10 })
    for (let asked = 0; asked < 20; asked++) expect(sources.take(slow, 0)).toBe(0)
    expect(sources.take(slow, 30)).toBe(0)
    expect(sources.take(slow, 0)).toBe(2_100)
    sources.giveBack(slow, 30)
    expect(sources.take(slow, 30)).toBe(0)
  })

  test('whose rate is edited has the new one at once, and has not forgotten what it sent', () => {
    const { sources } = follow()
    expect(sources.take(source('a', { maxPerSecond: 1 }), 11)).toBe(0)
    expect(sources.take(source('a', { maxPerSecond: 1 }), 1)).toBe(11_000)
    expect(sources.take(source('a', { maxPerSecond: 100 }), 1)).toBe(110)
  })
})
