import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseJson, hasMember } from '../../../../src/message/json/json.ts'
import { spelledJson } from '../json-text.ts'

/** Returns a value as JSON that tells 0 from -0. JSON.stringify alone doesn't tell them apart. */
const spell = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) => (Object.is(member, -0) ? 'minus zero' : member))

function read(text: string): unknown {
  const result = parseJson(text)
  if (!result.ok) throw new Error('refused')
  return result.value
}

test('any JSON is read as what it means', () => {
  fc.assert(
    fc.property(spelledJson, ({ text, value }) => {
      expect(spell(read(text))).toBe(spell(value))
    }),
    { numRuns: 5000 },
  )
})

describe('a key keeps its name after another text had a key with a backslash in its place', () => {
  test.each([
    ['\\n', String.raw`{"a":1,"\\":2}`, String.raw`{"a":1,"\n":2}`, '\n'],
    ['an escaped quote', String.raw`{"b":1,"\\":2}`, String.raw`{"b":1,"\"":2}`, '"'],
    ['été, escaped', String.raw`{"c":1,"\\u0":2}`, String.raw`{"c":1,"\u00e9t\u00e9":2}`, 'été'],
    ['a key that ends in an escape', String.raw`{"d":1,"x\\":2}`, String.raw`{"d":1,"x\t":2}`, 'x\t'],
    ['a lone surrogate', String.raw`{"e":1,"\\":2}`, String.raw`{"e":1,"\ud800":2}`, '\ud800'],
    ['\\n, spaced', String.raw`{"f":1,"\\":2}`, '{"f":1,"\\n" \n\t :2}', '\n'],
    ['a backslash itself', String.raw`{"g":1,"\\":2}`, String.raw`{"g":1,"\\":2}`, '\\'],
  ])('%s', (_what, before, text, key) => {
    read(before)
    expect(Object.keys(Object(read(text)))[1]).toBe(key)
  })

  test('deep inside, with all that is around it', () => {
    read(String.raw`{"h":1,"\\":2}`)
    const text = String.raw`[ {"x":[{"h":-0 , "\n":{"__proto__":{"2":null,"1":[true,false,[],{}]}}}, "\\\""]}, 1e3 ]`
    expect(spell(read(text))).toBe(
      String.raw`[{"x":[{"h":"minus zero","\n":{"__proto__":{"1":[true,false,[],{}],"2":null}}},"\\\""]},1000]`,
    )
  })

  test('among a hundred thousand levels', () => {
    read(String.raw`{"i":1,"\\":2}`)
    const levels = 100_000
    const value = read(String.raw`{"i":1,"\n":${'['.repeat(levels)}${']'.repeat(levels)}}`)
    expect(Object.keys(Object(value))[1]).toBe('\n')
  })

  test('before a value of millions of escapes', () => {
    read(String.raw`{"j":1,"\\":2}`)
    const value = read(String.raw`{"j":1,"\n":"${'\\"'.repeat(5_000_000)}"}`)
    expect(Object.keys(Object(value))[1]).toBe('\n')
  })
})

test('what is beside an escaped key is parsed in one piece, and not value by value', () => {
  const beside = Array.from({ length: 1_000 }, (_, at) => `{"a":[${at}]}`).join(',')
  const text = String.raw`{"x":[{"\\":1,"\n":1},${beside}]}`
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  read(text)
  expect(parse.mock.calls.length).toBeLessThan(20)
})

test.each(['', '{', '{"a":1}}', 'NaN', '{"\\x":1}', "{'a':1}", '[1,]'])('%j is no JSON', (text) => {
  expect(parseJson(text)).toEqual({ ok: false })
})

describe('a member is found', () => {
  const sample = JSON.parse('{"a":[1,{"__proto__":{"b":2}}],"c":null}') as unknown

  test('by its key', () => {
    expect(hasMember(sample, (key) => key === 'b')).toBe(true)
  })

  test('by its value', () => {
    expect(hasMember(sample, (_key, value) => value === 2)).toBe(true)
  })

  test('only if it is there', () => {
    expect(hasMember(sample, (key, value) => key === '0' || value === 3)).toBe(false)
  })
})
