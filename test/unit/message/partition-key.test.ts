import { expect, test } from 'vitest'
import { partitionKey } from '../../../src/message/partitioner.ts'

test.each([
  ['userId', { type: 'page', userId: 'u', anonymousId: 'a' }, 'u'],
  ['anonymousId when the userId is absent', { type: 'page', anonymousId: 'a' }, 'a'],
  ['anonymousId when the userId is null', { type: 'page', userId: null, anonymousId: 'a' }, 'a'],
  ['anonymousId when the userId is empty', { type: 'page', userId: '', anonymousId: 'a' }, 'a'],
  ['User ID of an alias', { type: 'alias', 'User ID': 'u', anonymousId: 'a' }, 'u'],
  ['not the User ID of another kind', { type: 'page', 'User ID': 'u', anonymousId: 'a' }, 'a'],
  ['none without ids', { type: 'page' }, undefined],
])('the partition key is %s', (_what, message, expected) => {
  expect(partitionKey(message)).toBe(expected)
})
