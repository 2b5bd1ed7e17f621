import { expect, test } from 'vitest'
import { readFrame } from '../../../src/schema-registry/frame.ts'

test('a frame is the magic byte, four bytes of schema id, and the value', () => {
  expect(readFrame(Buffer.from([0, 0, 1, 0, 2, 7, 8]))).toEqual({
    ok: true,
    schemaId: 65_538,
    payload: Buffer.from([7, 8]),
  })
})

test('a frame may hold an empty value', () => {
  expect(readFrame(Buffer.from([0, 0, 0, 0, 1]))).toMatchObject({ ok: true, payload: Buffer.alloc(0) })
})

test.each([[[0]], [[0, 0, 0, 1]]])('%j is no whole frame', (bytes) => {
  expect(readFrame(Buffer.from(bytes))).toMatchObject({ ok: false, reason: 'bad_frame' })
})

test('a negative schema id is none', () => {
  expect(readFrame(Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]))).toMatchObject({
    ok: false,
    reason: 'bad_frame',
    detail: expect.stringContaining('-1'),
  })
})
