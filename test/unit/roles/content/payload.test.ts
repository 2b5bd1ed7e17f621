import { expect, test } from 'vitest'
import type { Decoder } from '../../../../src/schema-registry/decoder.ts'
import { refuseFramed } from '../../../../src/schema-registry/frame.ts'
import { readPayload, type ReadPayload } from '../../../../src/roles/content/payload.ts'

const framed = Buffer.from([0, 0, 0, 0, 7, 1, 2, 3])

function read(value: Buffer | null, decode: Decoder['decode'], isFramed = true): Promise<ReadPayload> {
  const decoder = { decode }
  return readPayload(value, { messageId: 'm1', isFramed, decoder, withinMs: 50 })
}

const unasked = (): never => {
  throw new Error('nobody asks')
}

test.each(['{"messageId":"m1"}', '{"event":"Sent without one"}', '[1]', 'no JSON', ''])(
  'a value that may be of the message is shown: %s',
  async (text) => {
    expect(await read(Buffer.from(text), unasked)).toEqual({ payload: text, note: undefined })
  },
)

test('a value that names another message is not shown', async () => {
  const { payload, note } = await read(Buffer.from('{"messageId":"m2","userId":"somebody else"}'), unasked)
  expect([payload, note]).toEqual([undefined, expect.stringContaining('another message is in its place')])
})

test('a framed value is shown as its schema says, once that is there', async () => {
  let asked = 0
  const decode = () =>
    ++asked < 3 ? Promise.resolve() : ({ ok: true, value: Buffer.from('{"messageId":"m1"}') } as const)
  expect(await read(framed, decode)).toEqual({ payload: '{"messageId":"m1"}', note: undefined })
})

test('a framed value without a registry, or that its schema does not fit, says so', async () => {
  const { payload, note } = await read(framed, () => refuseFramed('no_schema_registry', 'Set registry.url.'))
  expect([payload, note]).toEqual([undefined, 'it is framed, and can not be read: Set registry.url.'])
})

test('a registry that does not answer is waited for no longer than it may take', async () => {
  const { payload, note } = await read(framed, () => new Promise(() => {}))
  expect([payload, note]).toEqual([undefined, expect.stringContaining('gave no schema within 0.05 s')])
})

test('a registry that gives no schema is quoted, such as one that refuses the login', async () => {
  const { note } = await readPayload(framed, {
    messageId: 'm1',
    isFramed: true,
    decoder: { decode: () => new Promise(() => {}) },
    withinMs: 50,
    registryTrouble: () => 'it answered 401',
  })
  expect(note).toMatch(/^it is framed .* gave no schema within 0\.05 s: it answered 401$/)
})

test('of a topic whose values are not framed a first byte of 0 means nothing', async () => {
  expect(await read(Buffer.from([0, 65]), unasked, false)).toEqual({ payload: '\u0000A', note: undefined })
})
