import { expect, test } from 'vitest'
import { Fences } from '../../../src/waiting/fences.ts'

const unit = 3
const earlier = { epoch: 1, sinceMs: 1_000 }
const own = { epoch: 2, sinceMs: 2_000 }
const later = { epoch: 3, sinceMs: 3_000 }

const message = (topic = 'events', partition = unit) => ({ source: { topic, partition, offset: 5 } })

test('what an earlier owner appends of a topic is void from the first offset that is known to be later than its beginning', () => {
  const fences = new Fences(unit, own)
  expect(fences.isVoid(100, message(), earlier)).toBe(false)
  fences.note('events')
  const [first, second] = [fences.ahead(true), fences.ahead(true)]
  expect(fences.isVoid(100, message(), earlier)).toBe(false)
  second(120)
  first(110)
  expect(fences.isVoid(109, message(), earlier)).toBe(false)
  expect(fences.isVoid(110, message(), earlier)).toBe(true)
  expect(fences.isVoid(110, message('deletions'), earlier)).toBe(false)
  expect(fences.isVoid(110, message('events', 0), earlier)).toBe(false)
})

test('what later owners append is never void, nor what is by nobody who is known to be earlier', () => {
  const fences = new Fences(unit, own)
  fences.note('events')
  fences.ahead(true)(100)
  for (const by of [later, own, undefined, { ...earlier, epoch: 2 }, { ...earlier, sinceMs: 2_000 }])
    expect(fences.isVoid(110, message(), by)).toBe(false)
})

test('later owners judge by the fences that an owner has told, and find nothing void that it has found in the queue', () => {
  const fences = new Fences(unit, own)
  expect([...fences.told]).toEqual([])
  fences.note('events')
  const [first, second] = [fences.ahead(true), fences.ahead(true)]
  expect(fences.isVoid(115, message(), earlier)).toBe(false)
  second(120)
  expect(fences.isVoid(121, message(), earlier)).toBe(true)
  first(110)
  fences.note('deletions')
  expect([...fences.told]).toEqual([['events', 116]])
  const next = new Fences(unit, later)
  next.learn([{ by: own, fences: fences.told }])
  expect(next.isVoid(115, message(), earlier)).toBe(false)
  expect(next.isVoid(116, message(), earlier)).toBe(true)
  expect(next.isVoid(116, message('deletions'), earlier)).toBe(false)
  for (const by of [own, later, undefined]) expect(next.isVoid(116, message(), by)).toBe(false)
})

test('an offset that was asked for before a topic has begun is no fence of the topic', () => {
  const fences = new Fences(unit, own)
  const before = fences.ahead(true)
  fences.note('events')
  before(100)
  expect(fences.isVoid(100, message(), earlier)).toBe(false)
  fences.note('deletions')
  fences.ahead(true)(101)
  expect(fences.isVoid(101, message(), earlier)).toBe(true)
  expect(fences.isVoid(101, message('deletions'), earlier)).toBe(true)
})

test('a topic that was begun before the commit of the queue has no fence until then', () => {
  const fences = new Fences(unit, own)
  fences.note('events')
  const before = fences.ahead(false)
  before(100)
  expect(fences.isVoid(100, message(), earlier)).toBe(false)
  expect(fences.begin()).toBe(true)
  expect(fences.begin()).toBe(false)
  before(101)
  expect(fences.isVoid(101, message(), earlier)).toBe(false)
  fences.ahead(true)(102)
  expect(fences.isVoid(101, message(), earlier)).toBe(false)
  expect(fences.isVoid(102, message(), earlier)).toBe(true)
  fences.note('events')
  expect(fences.begin()).toBe(false)
})

test('what was found stays if nobody was between its owner and this one, or if no owner can call it void', () => {
  const fences = new Fences(unit, later)
  for (const by of [own, later, undefined]) expect(fences.isCertain(by)).toBe(true)
  // After a reset of the commit, a former owner may have any number.
  for (const by of [earlier, { ...own, epoch: 50 }]) expect(fences.isCertain(by)).toBe(false)
})
