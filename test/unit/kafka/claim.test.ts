import { AssignerProtocol } from 'kafkajs'
import { expect, test } from 'vitest'
import { encodeClaim, readClaim } from '../../../src/kafka/claim.ts'

function metadata(userData: Buffer): Buffer {
  return AssignerProtocol.MemberMetadata.encode({ version: 2, topics: ['events'], userData })
}

const nothing = { units: [], sinceMs: 0, busy: [], busyWithState: [] }

test('a claim is read back from the subscription that carries it', () => {
  const claim = { units: [0, 3], sinceMs: 1_795_281_192_253, busy: [0, 3, 7], busyWithState: [3] }
  expect(readClaim(metadata(encodeClaim(claim)))).toEqual(claim)
})

test('a claim of a member that knows of no states is busy with all that it is busy with', () => {
  const text = '{"units":[0],"sinceMs":1,"busy":[0,3]}'
  expect(readClaim(metadata(Buffer.from(text)))).toMatchObject({ busy: [0, 3], busyWithState: [0, 3] })
})

test('what another program put there, or a damaged subscription, claims nothing', () => {
  for (const text of [
    '',
    'x',
    '{}',
    '[]',
    'null',
    '{"units":[1],"sinceMs":0}',
    '{"units":["1"],"sinceMs":0,"busy":[]}',
  ])
    expect(readClaim(metadata(Buffer.from(text)))).toEqual(nothing)
  expect(readClaim(Buffer.alloc(0))).toEqual(nothing)
  expect(readClaim(Buffer.from('not a subscription'))).toEqual(nothing)
})
