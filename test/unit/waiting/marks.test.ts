import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Block, blockSize, placesOf } from '../../../src/waiting/block.ts'
import {
  decodeDone,
  decodeOwners,
  encodeDone,
  encodeOwners,
  fencesText,
  markKeyText,
  parseFences,
  parseMarkKey,
  parseQueued,
  queuedText,
} from '../../../src/waiting/marks.ts'
import { Owners, queueClasses } from '../../../src/waiting/owners.ts'

test('another process reads from an owners mark whose the records are', () => {
  const writer = new Owners()
  writer.codeOf('somebody else', 'fresh')
  const runs: [number, number][] = [
    [writer.codeOf('a', 'fresh'), 3],
    [0, 2],
    [writer.codeOf('b', 'retry'), 1],
    [writer.codeOf('a', 'front'), 4],
  ]
  const mark = encodeOwners({ runs, sequences: new Map([['w1', 7]]) }, writer)
  const reader = new Owners()
  const read = decodeOwners(mark, reader)
  const named = read?.runs.map(([code, length]) =>
    code === 0 ? ['nobody', length] : [reader.destinationOf(code), reader.classOf(code), length],
  )
  expect(named).toEqual([
    ['a', 'fresh', 3],
    ['nobody', 2],
    ['b', 'retry', 1],
    ['a', 'front', 4],
  ])
  expect(read?.sequences).toEqual(new Map([['w1', 7]]))
})

test('a damaged mark counts as none, and never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const read = decodeOwners(Buffer.from(text), new Owners())
      expect(read === undefined || Array.isArray(read.runs)).toBe(true)
    }),
  )
  expect(decodeDone(Buffer.from([9, 1]))).toBeUndefined()
  expect(decodeDone(Buffer.alloc(0))).toBeUndefined()
})

test('a done mark names the places that are done', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(blockSize - 1)), (places) => {
      const block = new Block()
      block.push(4, blockSize)
      for (const place of places) block.finish(place)
      const bits = decodeDone(encodeDone(block.doneBits()))
      expect([...placesOf(bits ?? Buffer.alloc(0))]).toEqual(places.toSorted((a, b) => a - b))
    }),
  )
})

test('fences are read as they were written, and from any other text none', () => {
  const fences = new Map([
    ['events', 12],
    ['memberships', 0],
  ])
  expect(parseFences(fencesText(fences))).toEqual(fences)
  expect(fencesText(new Map())).toBe('')
  for (const text of [undefined, '', '{}', 'null', '[', '[["events"]]', '[["events",1.5]]', '[[1,2]]'])
    expect(parseFences(text).size).toBe(0)
})

test('keys and headers are read as they were written, and others are not', () => {
  for (const key of [
    { kind: 'owners', topicId: 'id', block: 12 },
    { kind: 'done', topicId: '', block: 0, writer: 'w-_1' },
  ] as const)
    expect(parseMarkKey(markKeyText(key))).toEqual(key)
  expect(parseMarkKey('id/other/1')).toBeUndefined()
  for (const queueClass of queueClasses) {
    const queued = { writer: 'w', sequence: 3, queueClass }
    expect(parseQueued(queuedText(queued))).toEqual(queued)
  }
  expect(parseQueued('w/1/other')).toEqual({ writer: '', sequence: 0, queueClass: 'fresh' })
  expect(parseQueued(undefined)).toEqual({ writer: '', sequence: 0, queueClass: 'fresh' })
})
