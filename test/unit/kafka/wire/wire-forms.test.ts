import { describe, expect, test } from 'vitest'
import { metadataRequest } from '../../../../src/kafka/wire/metadata-request.ts'
import { epochEndRequest, listOffsetsRequest } from '../../../../src/kafka/wire/offset-requests.ts'
import type { WireRequest } from '../../../../src/kafka/wire/wire-request.ts'

/**
 * A request to a broker of Kafka 4.3.1, and the broker's answer. Both are in hexadecimal digits, without the
 * headers. The broker has the topic `events` with two partitions, and two records in the second one. The
 * broker doesn't have the topic `absent`.
 */
type Captured = { readonly version: number; readonly request: string; readonly answer: string }

const metadata: readonly Captured[] = [
  {
    version: 12,
    request:
      '0300000000000000000000000000000000076576656e7473000000000000000000000000000000000007616273656e7400000000',
    answer:
      '0000000002000000010a3132372e302e302e310000690200001739566c7556745552774f6d4d32384170515366784c4100000001030000076576656e7473209880822cbf40649eb38adf2ed8b82f0003000000000000000000010000000002000000010200000001010000000000000100000001000000000200000001020000000101008000000000000307616273656e74000000000000000000000000000000000001800000000000',
  },
  {
    version: 10,
    request:
      '0300000000000000000000000000000000076576656e7473000000000000000000000000000000000007616273656e740000000000',
    answer:
      '0000000002000000010a3132372e302e302e310000690200001739566c7556745552774f6d4d32384170515366784c4100000001030000076576656e7473209880822cbf40649eb38adf2ed8b82f0003000000000000000000010000000002000000010200000001010000000000000100000001000000000200000001020000000101008000000000000307616273656e7400000000000000000000000000000000000180000000008000000000',
  },
  {
    version: 8,
    request: '0000000200066576656e74730006616273656e74000000',
    answer:
      '00000000000000010000000100093132372e302e302e3100006902ffff001639566c7556745552774f6d4d32384170515366784c410000000100000002000000066576656e7473000000000200000000000000000001000000000000000100000001000000010000000100000000000000000001000000010000000000000001000000010000000100000001000000008000000000030006616273656e7400000000008000000080000000',
  },
  {
    version: 7,
    request: '0000000200066576656e74730006616273656e7400',
    answer:
      '00000000000000010000000100093132372e302e302e3100006902ffff001639566c7556745552774f6d4d32384170515366784c410000000100000002000000066576656e74730000000002000000000000000000010000000000000001000000010000000100000001000000000000000000010000000100000000000000010000000100000001000000010000000000030006616273656e740000000000',
  },
  {
    version: 5,
    request: '0000000200066576656e74730006616273656e7400',
    answer:
      '00000000000000010000000100093132372e302e302e3100006902ffff001639566c7556745552774f6d4d32384170515366784c410000000100000002000000066576656e7473000000000200000000000000000001000000010000000100000001000000010000000000000000000100000001000000010000000100000001000000010000000000030006616273656e740000000000',
  },
  {
    version: 4,
    request: '0000000200066576656e74730006616273656e7400',
    answer:
      '00000000000000010000000100093132372e302e302e3100006902ffff001639566c7556745552774f6d4d32384170515366784c410000000100000002000000066576656e747300000000020000000000000000000100000001000000010000000100000001000000000001000000010000000100000001000000010000000100030006616273656e740000000000',
  },
]

const ends: readonly Captured[] = [
  {
    version: 5,
    request:
      'ffffffff000000000200066576656e7473000000020000000000000000ffffffffffffffff00000001ffffffffffffffffffffffff0006616273656e74000000010000000000000004ffffffffffffffff',
    answer:
      '00000000000000020006616273656e7400000001000000000003ffffffffffffffffffffffffffffffffffffffff00066576656e747300000002000000000000ffffffffffffffff000000000000000000000000000000010000ffffffffffffffff000000000000000200000000',
  },
  {
    version: 3,
    request:
      'ffffffff000000000200066576656e74730000000200000000ffffffffffffffff00000001ffffffffffffffff0006616273656e740000000100000000ffffffffffffffff',
    answer:
      '00000000000000020006616273656e7400000001000000000003ffffffffffffffffffffffffffffffff00066576656e747300000002000000000000ffffffffffffffff0000000000000000000000010000ffffffffffffffff0000000000000002',
  },
  {
    version: 1,
    request:
      'ffffffff0000000200066576656e74730000000200000000ffffffffffffffff00000001ffffffffffffffff0006616273656e740000000100000000ffffffffffffffff',
    answer:
      '000000020006616273656e7400000001000000000003ffffffffffffffffffffffffffffffff00066576656e747300000002000000000000ffffffffffffffff0000000000000000000000010000ffffffffffffffff0000000000000002',
  },
]

const starts: Captured = {
  version: 5,
  request:
    'ffffffff000000000200066576656e7473000000020000000000000000fffffffffffffffe00000001fffffffffffffffffffffffe0006616273656e74000000010000000000000004fffffffffffffffe',
  answer:
    '00000000000000020006616273656e7400000001000000000003ffffffffffffffffffffffffffffffffffffffff00066576656e747300000002000000000000ffffffffffffffff000000000000000000000000000000010000ffffffffffffffff000000000000000000000000',
}

const epochEnds: Captured = {
  version: 3,
  request:
    'ffffffff0000000200066576656e74730000000200000001ffffffff000000000000000000000000000000030006616273656e7400000001000000000000000400000000',
  answer:
    '000000000000000200066576656e747300000002000000000001000000000000000000000002000000000000ffffffffffffffffffffffff0006616273656e7400000001000300000000ffffffffffffffffffffffff',
}

function written(request: WireRequest<unknown>, { version }: Captured): string {
  return request.write(version).toString('hex')
}

function read<T>(request: WireRequest<T>, { version, answer }: Captured): T | Promise<T> {
  return request.read(Buffer.from(answer, 'hex'), version)
}

describe('metadata of topics', () => {
  const request = metadataRequest(['events', 'absent'])

  test.each(metadata)('in version $version', async (captured) => {
    expect(written(request, captured)).toBe(captured.request)
    const { brokers, controllerId, topicMetadata } = await read(request, captured)
    expect(brokers).toEqual([{ nodeId: 1, host: '127.0.0.1', port: 26882, rack: null }])
    expect(controllerId).toBe(1)
    const [events, absent] = topicMetadata.toSorted((a, b) => (a.topic > b.topic ? -1 : 1))
    const partition = (partitionId: number) => ({
      partitionErrorCode: 0,
      partitionId,
      leader: 1,
      leaderEpoch: captured.version >= 7 ? 0 : -1,
      replicas: [1],
      isr: [1],
      offlineReplicas: [],
    })
    expect(events).toEqual({
      topicErrorCode: 0,
      topic: 'events',
      topicId: captured.version >= 10 ? 'IJiAgiy_QGSes4rfLti4Lw' : undefined,
      isInternal: false,
      partitionMetadata: [partition(0), partition(1)],
    })
    expect(absent).toMatchObject({
      topicErrorCode: 3,
      topic: 'absent',
      topicId: undefined,
      partitionMetadata: [],
    })
  })
})

const questions = [
  { topic: 'events', partition: 0, currentLeaderEpoch: 0 },
  { topic: 'events', partition: 1, currentLeaderEpoch: -1 },
  { topic: 'absent', partition: 0, currentLeaderEpoch: 4 },
] as const

const found = (offsets: readonly [number, number]) => [
  { topic: 'events', partition: 0, errorCode: 0, offset: offsets[0] },
  { topic: 'events', partition: 1, errorCode: 0, offset: offsets[1] },
  { topic: 'absent', partition: 0, errorCode: 3, offset: -1 },
]

describe('where logs', () => {
  test.each(ends)('end, in version $version', async (captured) => {
    const request = listOffsetsRequest(questions, 'end')
    expect(written(request, captured)).toBe(captured.request)
    const answers = await read(request, captured)
    expect(answers.toSorted(inOrder)).toEqual(found([0, 2]).toSorted(inOrder))
  })

  test('begin', async () => {
    const request = listOffsetsRequest(questions, 'start')
    expect(written(request, starts)).toBe(starts.request)
    expect((await read(request, starts)).toSorted(inOrder)).toEqual(found([0, 0]).toSorted(inOrder))
  })
})

test('where the epochs of leaders end', async () => {
  const [first, second, absent] = questions
  const request = epochEndRequest([
    { ...second, leaderEpoch: 0 },
    { ...first, leaderEpoch: 3 },
    { ...absent, leaderEpoch: 0 },
  ])
  expect(written(request, epochEnds)).toBe(epochEnds.request)
  expect((await read(request, epochEnds)).toSorted(inOrder)).toEqual([
    { topic: 'absent', partition: 0, errorCode: 3, leaderEpoch: -1, endOffset: -1 },
    { topic: 'events', partition: 0, errorCode: 0, leaderEpoch: -1, endOffset: -1 },
    { topic: 'events', partition: 1, errorCode: 0, leaderEpoch: 0, endOffset: 2 },
  ])
})

type Place = { readonly topic: string; readonly partition: number }

function inOrder(a: Place, b: Place): number {
  return a.topic.localeCompare(b.topic) || a.partition - b.partition
}
