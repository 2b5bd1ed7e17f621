import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Checkpoint } from '../../../../src/audience/store/checkpoint.ts'
import { KeyFilter } from '../../../../src/audience/store/key-filter.ts'
import { Staging } from '../../../../src/audience/syncs/staging.ts'
import type { StateStore } from '../../../../src/audience/store/store.ts'
import { MemoryStores } from '../memory-stores.ts'
import { isSameJson } from '../../../../src/audience/decide.ts'

async function open(): Promise<StateStore> {
  const opened = await new MemoryStores(new Map()).open('disk')
  if (!opened.ok) throw new Error('a store in memory opens')
  return opened.store
}

async function allOf(staging: Staging): Promise<string[]> {
  const next = await staging.sorted()
  const all: string[] = []
  for (let batch = await next(); batch.length > 0; batch = await next()) all.push(...batch)
  return all
}

test('users of many runs come out in order, each once', async () => {
  const store = await open()
  const staging = new Staging(store, 0)
  const users = Array.from({ length: 30_000 }, (_, index) => `u${(index * 7_919) % 25_000}`)
  for (let at = 0; at < users.length; at += 7_000) {
    await staging.add(users.slice(at, at + 7_000), Buffer.from(`part ${at}`))
  }
  const expected = [...new Set(users)].sort()
  expect(await allOf(staging)).toEqual(expected)
  expect(await allOf(staging), 'a second time').toEqual(expected)
  expect((await staging.partBytes(1))?.toString()).toBe('part 7000')
  await store.write([...staging.removal()])
  expect(await staging.partBytes(1)).toBeUndefined()
})

test('however users come, and whenever memory is spilled, they come out in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(fc.array(fc.string({ minLength: 1, maxLength: 2 }), { maxLength: 20 }), fc.boolean()),
        { maxLength: 8 },
      ),
      async (parts) => {
        const staging = new Staging(await open(), 3)
        for (const [users, isSpilled] of parts) {
          await staging.add(users, Buffer.alloc(0))
          if (isSpilled) await staging.spill()
        }
        const expected = [...new Set(parts.flatMap(([users]) => users))].sort()
        expect(await allOf(staging)).toEqual(expected)
      },
    ),
    { numRuns: 300 },
  )
})

test('a checkpoint passes what was written here as long as there is no gap', () => {
  const checkpoint = new Checkpoint(5)
  checkpoint.wrote(6)
  expect(checkpoint.position).toBe(5)
  checkpoint.wrote(5)
  expect(checkpoint.position).toBe(7)
  checkpoint.wrote(9)
  checkpoint.read(7)
  expect(checkpoint.position).toBe(8)
  checkpoint.read(8)
  expect(checkpoint.position).toBe(10)
})

test('a checkpoint stays where something has still to be written', () => {
  const checkpoint = new Checkpoint(5)
  checkpoint.block(6)
  checkpoint.block(6)
  checkpoint.read(5)
  checkpoint.read(6)
  checkpoint.read(7)
  expect(checkpoint.position).toBe(6)
  checkpoint.unblock(6)
  expect(checkpoint.position).toBe(6)
  checkpoint.unblock(6)
  expect(checkpoint.position).toBe(8)
})

test('a filter knows all that was added, and little else', () => {
  const filter = new KeyFilter(2 ** 16)
  expect(filter.mayHold('a')).toBe(false)
  const keys = Array.from({ length: 1_000 }, (_, index) => `key-${index}`)
  for (const key of keys) filter.add(key)
  expect(keys.every((key) => filter.mayHold(key))).toBe(true)
  const wrong = keys.filter((key) => filter.mayHold(`${key}-x`)).length
  expect(wrong).toBeLessThan(60)
})

test('JSON is the same whatever the order of its fields', () => {
  expect(isSameJson('{"a":1,"b":[1,2]}', '{"b":[1,2],"a":1}')).toBe(true)
  expect(isSameJson('[1,2]', '[2,1]')).toBe(false)
  expect(isSameJson('"1"', '1')).toBe(false)
  expect(isSameJson('null', 'null')).toBe(true)
  // JSON.parse alone would read the second key like the first one (nodejs/node#63785).
  expect(isSameJson(String.raw`{"z":1,"\\":2}`, String.raw`{"z":1,"\n":2}`)).toBe(false)
})
