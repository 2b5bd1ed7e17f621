import { describe, expect, test } from 'vitest'
import { spoken, versionCaution, versionProblem } from '../../../src/topics/broker-versions.ts'
import { describeGroup, fetchCommits, findCoordinator } from '../../../src/kafka/wire/group-messages.ts'
import { metadataRequest } from '../../../src/kafka/wire/metadata-request.ts'
import { listOffsetsRequest } from '../../../src/kafka/wire/offset-requests.ts'

/**
 * The versions that Apache Kafka 4.3 supports of the requests that Sluice makes, by the key of the request.
 */
const kafka43 = new Map([
  [0, { lowest: 0, highest: 13 }],
  [1, { lowest: 4, highest: 18 }],
  [2, { lowest: 1, highest: 11 }],
  [3, { lowest: 0, highest: 13 }],
  [8, { lowest: 2, highest: 10 }],
  [9, { lowest: 1, highest: 10 }],
  [10, { lowest: 0, highest: 6 }],
  [11, { lowest: 0, highest: 9 }],
  [12, { lowest: 0, highest: 4 }],
  [13, { lowest: 0, highest: 5 }],
  [14, { lowest: 0, highest: 5 }],
  [15, { lowest: 0, highest: 6 }],
])

test('a broker that knows all that is spoken is taken', () => {
  expect(versionProblem(kafka43)).toBeUndefined()
})

test('one that is too old is told by what it lacks, with the versions that are supported', () => {
  const old = new Map(kafka43).set(3, { lowest: 0, highest: 3 }).set(0, { lowest: 0, highest: 2 })
  const problem = versionProblem(old)
  expect(problem).toMatch(
    /^the broker is too old .*Produce up to 2, 3 is needed; .*Metadata up to 3, 4 is needed/,
  )
  expect(problem).toMatch(/Apache Kafka 3\.\d to 4\.\d is supported$/)
})

test('one that has given up what is spoken is told as too new', () => {
  const next = new Map(kafka43).set(1, { lowest: 12, highest: 20 })
  expect(versionProblem(next)).toMatch(/^the broker is too new \(it knows Fetch from 12 on, 11 is the last/)
})

test('one without a request is told', () => {
  const without = new Map(kafka43)
  without.delete(11)
  expect(versionProblem(without)).toContain('it has no JoinGroup')
})

describe('a member with an instance id', () => {
  /** The versions of Apache Kafka 2.2. */
  const old = new Map(kafka43).set(11, { lowest: 0, highest: 4 })

  test('is refused by a broker before Kafka 2.3 at the start, by name', () => {
    expect(versionProblem(old, true)).toContain('JoinGroup up to 4, 5 is needed with kafka.instanceId')
  })

  test('and one without is taken', () => {
    expect(versionProblem(old)).toBeUndefined()
  })
})

test('a broker without topic ids is taken, with a caution', () => {
  expect(versionCaution(new Map(kafka43).set(3, { lowest: 0, highest: 9 }))).toContain(
    'this Kafka reports no topic ids: a topic that is deleted and recreated under its name is noticed by its offsets alone',
  )
  expect(versionCaution(kafka43)).toBeUndefined()
})

test('the table is what the requests say of themselves', () => {
  const group = 'g'
  const written = [
    findCoordinator(group),
    metadataRequest([]),
    fetchCommits(group, []),
    listOffsetsRequest([], 'end'),
    describeGroup(group),
  ]
  for (const { apiKey, apiName, lowest, highest } of written) {
    expect(spoken.find((one) => one.apiKey === apiKey)).toEqual({ apiKey, name: apiName, lowest, highest })
  }
})
