import { expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { pauseDeskOf } from '../../../../src/roles/operations/pause-desk.ts'

const unused = async (): Promise<void> => undefined

async function* readNone(): AsyncGenerator<never> {}

test('many requests at once share one reading of the topic, and none waits for the readings of all the others', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  let readings = 0
  const first = Promise.withResolvers<void>()
  const desk = pauseDeskOf({
    config: read.config,
    hasTopic: async () => true,
    reader: { stop: unused },
    // oxlint-disable-next-line require-yield -- the topic has no record
    read: async function* none() {
      readings++
      await first.promise
    },
    health: { read: async () => undefined },
    writer: { write: unused, stop: unused },
  })
  const asked = Array.from({ length: 50 }, () => desk.paused())
  first.resolve()
  expect(await Promise.all(asked)).toEqual(Array.from({ length: 50 }, () => ({ ok: true, value: [] })))
  // A request that comes during a reading may have to see a record that this reading misses. So it waits for
  // the next reading.
  expect(readings).toBe(2)
})

test('a topic that can not be read fails all requests that wait for it, and no later one', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  let isSilent = true
  const desk = pauseDeskOf({
    config: read.config,
    hasTopic: async () => !isSilent || Promise.reject(new Error('Kafka is silent')),
    reader: { stop: unused },
    read: readNone,
    health: { read: async () => undefined },
    writer: { write: unused, stop: unused },
  })
  const asked = await Promise.allSettled([desk.paused(), desk.resume('crm', 'ann'), desk.paused()])
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  isSilent = false
  expect(await desk.paused()).toEqual({ ok: true, value: [] })
})
