import { describe, expect, test } from 'vitest'
import { Chaskey } from '../../../src/repeats/chaskey.ts'

/** The key of the reference's test vectors. */
const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex')

function macOf(input: Uint8Array): string {
  const words = new Int32Array(20)
  new Uint8Array(words.buffer).set(input)
  const output = new Int32Array(4)
  new Chaskey(new Int32Array(new Uint8Array(key).buffer)).mac(words, input.length, output)
  return Buffer.from(output.buffer).toString('hex')
}

const counting = (length: number): Uint8Array => Uint8Array.from({ length }, (_, index) => index)

describe('the code', () => {
  /** The reference shows the first half of each code. */
  test.each([
    [0, 'dd3e1849d6824555'],
    [1, 'ed1da89ec93179ca'],
    [2, '98fe20a343cd666f'],
    [3, 'f6f418acdd7d9fa1'],
    [4, '4cf04960099949f3'],
    [12, '7a7912c1999eae81'],
    [15, '6a3ee3d35c043397'],
    [16, 'd13970d7be9b2350'],
    [17, '32acd914bfda3bc8'],
    [63, 'fc7f9df7991b87bc'],
  ])('of %i bytes is that of the reference', (length, expected) => {
    expect(macOf(counting(length)).slice(0, 16)).toBe(expected)
  })

  test('of no two inputs is the same, in either half', () => {
    const inputs = Array.from({ length: 64 }, (_, length) => counting(length))
    inputs.push(...inputs.map((bytes) => Buffer.concat([bytes, Buffer.alloc(1)])))
    const codes = [...new Set(inputs.map((bytes) => Buffer.from(bytes).toString('hex')))].map((hex) =>
      macOf(Buffer.from(hex, 'hex')),
    )
    expect(new Set(codes.map((code) => code.slice(0, 16))).size).toBe(codes.length)
    expect(new Set(codes.map((code) => code.slice(16))).size).toBe(codes.length)
  })
})
