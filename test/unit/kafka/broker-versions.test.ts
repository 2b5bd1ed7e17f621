import { expect, test } from 'vitest'
import { versionProblem } from '../../../src/kafka/broker-versions.ts'

/** The versions of Apache Kafka 4.3 for the requests that are made, by their key. */
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
