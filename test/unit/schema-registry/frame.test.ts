import { expect, test } from 'vitest'
import { foreignFrame, readFrame } from '../../../src/schema-registry/frame.ts'

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

test("an id of eight bytes, as Apicurio's producers write it, is told", () => {
  const value = Buffer.concat([Buffer.from([0]), Buffer.from([0, 0, 0, 0, 0, 0, 0, 7]), Buffer.from('avro')])
  expect(readFrame(value)).toMatchObject({
    ok: false,
    reason: 'bad_frame',
    detail: expect.stringMatching(/8 bytes.*Default4ByteIdHandler/),
  })
})

test.each([0, 5])('a frame of AWS Glue is told (compression %i)', (compression) => {
  const value = Buffer.concat([Buffer.from([3, compression]), Buffer.alloc(16, 9), Buffer.from('avro')])
  expect(foreignFrame(value, undefined)).toMatchObject({
    reason: 'bad_frame',
    detail: expect.stringContaining('AWS Glue'),
  })
})

test.each(['apicurio.value.globalId', 'apicurio.value.contentId', '__value_schema_id'])(
  'a schema that is named in the header %s is told',
  (header) => {
    const headers = { [header]: Buffer.alloc(8, 1) }
    expect(foreignFrame(Buffer.from([10, 0x61]), headers)).toMatchObject({
      reason: 'bad_frame',
      detail: expect.stringMatching(new RegExp(`${header}.*set [a-z.-]+=`)),
    })
    // Values with a JSON Schema are plain JSON behind such a header.
    expect(foreignFrame(Buffer.from(' \n{"type":"track"}'), headers)).toBeUndefined()
  },
)

test('other bytes are no frame: they are judged as JSON', () => {
  expect(foreignFrame(Buffer.from([3, 1]), undefined)).toBeUndefined()
  expect(foreignFrame(Buffer.from('[]'), { 'source-id': 'shop' })).toBeUndefined()
})
