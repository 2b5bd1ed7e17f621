import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { secretBreach, standardKeyOf, standardSecretBreach } from '../../../src/catalog/secret-rules.ts'

describe('secretBreach', () => {
  it.each(['s3cret', 'a söcret with spaces', '😀', 'whsec_*'])('takes %j', (secret) => {
    expect(secretBreach(secret)).toBeUndefined()
  })

  it.each([
    ['a\nb', 'has a control character or line break'],
    ['s3cret\n', 'has a control character or line break'],
    [' a', 'begins or ends with white space'],
    ['\ud800', 'is not well-formed Unicode'],
  ])('refuses %j', (secret, problem) => {
    expect(secretBreach(secret)?.problem).toBe(problem)
  })
})

describe('standardKeyOf', () => {
  it('is what follows whsec_, decoded from base64, whatever the bytes', () => {
    const key = fc.uint8Array({ minLength: 1, maxLength: 100, size: 'max' })
    fc.assert(
      fc.property(key, (bytes) => {
        expect(standardKeyOf(`whsec_${Buffer.from(bytes).toString('base64')}`)).toEqual(Buffer.from(bytes))
      }),
      { numRuns: 1_000 },
    )
  })

  it('is the UTF-8 bytes of any other secret, which a receiver can write as whsec_ and their base64', () => {
    const secret = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !text.startsWith('whsec_'))
    fc.assert(
      fc.property(secret, (text) => {
        const bytes = Buffer.from(text, 'utf8')
        expect(standardKeyOf(text)).toEqual(bytes)
        expect(standardKeyOf(`whsec_${bytes.toString('base64')}`)).toEqual(bytes)
      }),
      { numRuns: 1_000 },
    )
  })

  it.each([
    ['WHSEC_YQ==', 'another case'],
    ['whsecYQ==', 'no underscore'],
    [' whsec_YQ==', 'a space before'],
  ])('takes %j as text: %s', (secret) => {
    expect(standardKeyOf(secret)).toEqual(Buffer.from(secret))
  })
})

describe('standardSecretBreach', () => {
  it.each([
    ['whsec_', 'nothing'],
    ['whsec_====', 'padding alone'],
    ['whsec_YQ', 'no padding'],
    ['whsec_YQ===', 'too much padding'],
    ['whsec_YR==', 'bits that no byte has'],
    ['whsec_Y Q==', 'a space'],
    ['whsec_-_-_', 'base64url'],
    ['whsec_whsec_YQ==', 'the prefix twice'],
  ])('refuses %j: %s', (secret) => {
    expect(standardSecretBreach(secret)?.problem).toBe('begins with whsec_, and what follows is not base64')
  })

  it('lets each key be written in one way only, and says nothing of it', () => {
    const text = fc.string({ unit: fc.constantFrom(...'AQgwYZz0+/-_= \n'.split('')), maxLength: 12 })
    fc.assert(
      fc.property(text, (encoded) => {
        const secret = `whsec_${encoded}`
        const key = standardKeyOf(secret)
        expect(standardSecretBreach(secret) === undefined).toBe(key !== undefined)
        if (key !== undefined) expect(key.toString('base64')).toBe(encoded)
      }),
      { numRuns: 2_000 },
    )
  })
})
