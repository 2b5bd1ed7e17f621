import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { crc32c } from '../../../../src/kafka/wire/crc32c.ts'

/** Returns the checksum by its definition, bit by bit, with the reversed polynomial. */
function byBits(bytes: Uint8Array): number {
  let crc = -1
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

test('the checksum is that of RFC 3720, B.4', () => {
  expect(crc32c(Buffer.from('123456789'), 0, 9)).toBe(0xe3069283)
  expect(crc32c(Buffer.alloc(32), 0, 32)).toBe(0x8a9136aa)
  expect(crc32c(Buffer.alloc(32, 0xff), 0, 32)).toBe(0x62a8ab43)
  expect(crc32c(Buffer.alloc(0), 0, 0)).toBe(0)
})

test('the checksum of any part of any memory is that of its bits', () => {
  const bytes = fc.uint8Array({ maxLength: 200 })
  fc.assert(
    fc.property(bytes, fc.nat(9), fc.nat(9), fc.nat(9), (content, offset, start, end) => {
      const memory = new Uint8Array(offset + content.length)
      memory.set(content, offset)
      const view = memory.subarray(offset)
      const last = Math.max(start, view.length - end)
      const from = Math.min(start, view.length)
      const to = Math.min(last, view.length)
      expect(crc32c(view, from, to)).toBe(byBits(view.subarray(from, to)))
    }),
    { numRuns: 1_000 },
  )
})
