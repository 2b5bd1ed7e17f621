import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { JobLog } from '../../../../src/replay/job-log.ts'
import { replayDeskOf } from '../../../../src/roles/operations/replay-desk.ts'

// oxlint-disable-next-line require-yield -- it fails before the first record
async function* silent(): AsyncGenerator<never, void> {
  throw new Error('Kafka did not answer about sluice.replay-jobs/0 within 30000 ms')
}

test('a replay that Kafka has stored is created, though Kafka answers nothing afterwards', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const written: string[] = []
  const jobs = new JobLog({
    read: silent,
    write: async (records) => {
      written.push(...records.map(({ key }) => key.toString()))
    },
    isAudited: true,
  })
  const desk = replayDeskOf({
    config: read.config,
    kafka: new kafkajs.Kafka({ brokers: ['127.0.0.1:1'] }),
    catalog: () => ({ sources: new Map(), destinations: new Map(), destinationsBySource: new Map() }),
    reading: {
      pieces: () => ({ piece: async ({ from }) => ({ records: [], next: from }) }),
      topicId: async () => undefined,
      choose: () => () => ({ kind: 'no' }),
      stop: () => undefined,
    },
    jobs,
    stops: [],
  })
  const tally = { records: 2, bytes: 20, leftOut: {} }
  const selection = { from: 'dead-letters' } as const
  const job = await desk.create(
    { selection, ranges: [{ start: 0, end: 2 }], tally, groups: [], isAgain: false, isComplete: true },
    { perSecond: 10, by: 'ann' },
  )
  expect(written).toHaveLength(2)
  expect(job).toMatchObject({ order: { by: 'ann', counted: tally }, wish: { state: 'run' } })
  await expect(desk.show(job.order.id)).rejects.toThrow('Kafka did not answer')
})
