import { expect, test } from 'vitest'
import { createKafka } from '../../../../src/kafka/cluster/client.ts'
import { notesOf } from '../../../../src/kafka/cluster/client-notes.ts'
import { withoutSession } from '../../../../src/kafka/fetch/fetch-session.ts'
import { fetchRequest } from '../../../../src/kafka/wire/fetch-message.ts'
import { findCoordinator } from '../../../../src/kafka/wire/group-messages.ts'
import { metadataRequest } from '../../../../src/kafka/wire/metadata-request.ts'
import { epochEndRequest, listOffsetsRequest } from '../../../../src/kafka/wire/offset-requests.ts'
import { announcedThrottleMs, noteThrottle, throttledSeconds } from '../../../../src/kafka/wire/throttle.ts'
import {
  addPartitionsToTxn,
  commitTxn,
  initProducerId,
} from '../../../../src/kafka/wire/transaction-messages.ts'
import type { WireRequest } from '../../../../src/kafka/wire/wire-request.ts'

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

const rest = Buffer.from([0, 1, 2, 3, 4, 5, 6])

test.each([
  { what: 'a heartbeat', apiKey: 12, apiVersion: 3, answer: [int32(700), rest], ms: 700 },
  { what: 'a fetch', apiKey: 1, apiVersion: 11, answer: [int32(700), rest], ms: 700 },
  { what: 'a produce request, at its end', apiKey: 0, apiVersion: 7, answer: [rest, int32(700)], ms: 700 },
  {
    what: 'metadata behind tags',
    apiKey: 3,
    apiVersion: 12,
    answer: [rest.subarray(0, 1), int32(700)],
    ms: 700,
  },
  { what: 'versions, at their end', apiKey: 18, apiVersion: 2, answer: [int32(0), int32(700)], ms: 700 },
  { what: 'refused versions', apiKey: 18, apiVersion: 2, answer: [int32(35 << 16), int32(700)], ms: 0 },
  { what: 'a login, which is never throttled', apiKey: 36, apiVersion: 1, answer: [int32(700)], ms: 0 },
  {
    what: 'a version in which the broker waits itself',
    apiKey: 0,
    apiVersion: 5,
    answer: [int32(700)],
    ms: 0,
  },
  { what: 'an answer that is too short', apiKey: 12, apiVersion: 3, answer: [Buffer.from([1])], ms: 0 },
])('the throttle is found in the answer to $what', ({ apiKey, apiVersion, answer, ms }) => {
  expect(announcedThrottleMs({ apiKey, apiVersion }, Buffer.concat(answer))).toBe(ms)
})

const identity = { producerId: 1n, producerEpoch: 0 }

test.each<WireRequest<unknown>>([
  metadataRequest(['events']),
  fetchRequest({
    ...withoutSession,
    maxWaitMs: 1,
    minBytes: 1,
    maxBytes: 1,
    maxBytesPerPartition: 1,
    positions: [],
  }),
  listOffsetsRequest([], 'end'),
  epochEndRequest([]),
  findCoordinator('sluice'),
  initProducerId('sluice', 1_000),
  addPartitionsToTxn('sluice', identity, []),
  commitTxn('sluice', identity),
])(
  'the throttle is found in the newest answer to $apiName',
  ({ apiKey, highest, flexibleFrom = Infinity }) => {
    const tags = Buffer.alloc(highest >= flexibleFrom ? 1 : 0)
    const answer = Buffer.concat([tags, int32(700), rest])
    expect(announcedThrottleMs({ apiKey, apiVersion: highest }, answer)).toBe(700)
  },
)

test('throttles are added up by broker and request, and each kind is logged at most once a minute', () => {
  const lines: string[] = []
  const take = (broker: string, apiKey: number): void =>
    noteThrottle({ broker, clientId: 'sluice', apiKey, ms: 1_500 }, (line) => lines.push(line))
  for (const apiKey of [0, 0, 1, 19, 12]) take('unit-a:9092', apiKey)
  take('unit-b:9092', 0)
  const sums = throttledSeconds().filter(({ broker }) => broker.startsWith('unit-'))
  expect(sums.map(({ broker, request, seconds }) => [broker, request, seconds])).toEqual([
    ['unit-a:9092', 'produce', 3],
    ['unit-a:9092', 'fetch', 1.5],
    ['unit-a:9092', 'topics', 1.5],
    ['unit-a:9092', 'other', 1.5],
    ['unit-b:9092', 'produce', 1.5],
  ])
  expect(lines).toHaveLength(5)
  expect(lines[0]).toMatch(/unit-a:9092 .* 1\.5 s.*producer_byte_rate.*kafka\.clientId/)
  expect(lines[0]).toMatch(/ slows this process down: it reads nothing from a connection for \d+/)
})

test('a command, which logs only errors, says why it stands still', () => {
  const errors: string[] = []
  const settings = { brokers: ['unit:9092'], clientId: 'sluice', ssl: false } as const
  const kafka = createKafka(
    { ...settings, saslMechanism: 'none', saslUsername: undefined, saslPassword: undefined },
    {
      warn: () => undefined,
      debug: () => undefined,
      error: (_, text) => void errors.push(text),
      isLevelEnabled: () => false,
    },
  )
  notesOf(kafka)?.tellThrottle('a short wait', 500)
  notesOf(kafka)?.tellThrottle('a long wait', 20_000)
  expect(errors).toEqual(['kafka: a long wait'])
})
