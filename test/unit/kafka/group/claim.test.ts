import { AssignerProtocol } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import {
  type Claim,
  readAssignment,
  readSubscription,
  writeAssignment,
  writeSubscription,
} from '../../../../src/kafka/group/claim.ts'

const subscriptionOf = (userData: Buffer) =>
  AssignerProtocol.MemberMetadata.encode({ version: 2, topics: ['events'], userData })

const nothing: Claim = { units: [], sinceMs: 0, busy: [], busyWithState: [] }

describe('the claim in a subscription', () => {
  test('is read as it was written', () => {
    const claim = { units: [1, 4], sinceMs: 5, busy: [1, 2], busyWithState: [2], partitions: 6 }
    const topics = ['events', 'retry.1s']
    expect(readSubscription(writeSubscription({ topics, claim }))).toEqual({ topics, claim })
  })

  test('of a version that knew less counts for what it says, and for the rest as busy', () => {
    const before = Buffer.from('{"units":[1],"sinceMs":5,"busy":[1,2]}')
    expect(readSubscription(subscriptionOf(before)).claim).toEqual({
      units: [1],
      sinceMs: 5,
      busy: [1, 2],
      busyWithState: [1, 2],
    })
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['no JSON', Buffer.from('{')],
    ['a list', Buffer.from('[]')],
    ['null', Buffer.from('null')],
    ['a part of it', Buffer.from('{"units":[1],"sinceMs":0}')],
    ['another shape', Buffer.from('{"units":["1"],"sinceMs":5,"busy":[]}')],
  ])('that is %s claims nothing', (_name, userData) => {
    expect(readSubscription(subscriptionOf(userData))).toEqual({ topics: ['events'], claim: nothing })
  })

  test('that is no subscription claims nothing', () => {
    expect(readSubscription(Buffer.from([1]))).toEqual({ topics: [], claim: nothing })
  })
})

describe('an assignment', () => {
  test('is read as it was written', () => {
    const assignment = new Map([['events', [0, 3]]])
    expect(readAssignment(writeAssignment(assignment))).toEqual(assignment)
  })

  test('that is none has nothing', () => {
    expect(readAssignment(Buffer.alloc(0))).toEqual(new Map())
  })
})
