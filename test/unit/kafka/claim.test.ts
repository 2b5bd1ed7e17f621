import { AssignerProtocol } from 'kafkajs'
import { expect, test } from 'vitest'
import { encodeClaim, readClaim } from '../../../src/kafka/claim.ts'

function metadata(userData: Buffer): Buffer {
  return AssignerProtocol.MemberMetadata.encode({ version: 2, topics: ['events'], userData })
}

const nothing = { units: [], sinceMs: 0, busy: [] }

test('a claim is read back from the subscription that carries it', () => {
  const claim = { units: [0, 3], sinceMs: 1_795_281_192_253, busy: [0, 3, 7] }
  expect(readClaim(metadata(encodeClaim(claim)))).toEqual(claim)
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
