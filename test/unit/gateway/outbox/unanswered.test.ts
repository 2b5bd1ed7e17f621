import { expect, test } from 'vitest'
import { arrivalAt, occasionOf } from '../../../../src/gateway/messages/clock.ts'
import { Parcel } from '../../../../src/gateway/outbox/parcel.ts'
import { Unanswered } from '../../../../src/gateway/outbox/unanswered.ts'

test('what is kept for a client that sends again keeps no memory that it shared with other messages', () => {
  const shared = Buffer.from('"é","other"')
  const parcel = new Parcel('events', occasionOf(undefined, arrivalAt(0)), new Map(), 1_000)
  const value = shared.subarray(0, 4)
  parcel.add({ partition: 0, key: 'u', value, headers: {}, bytes: 4 }, 'm')
  const [part] = parcel.parts
  if (part === undefined) throw new Error('the parcel has no part')
  new Unanswered(() => 0).keep(part)
  expect(part.records.map((record) => record.value)).toEqual(['"é"'])
})
