import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { committedOffsets, endOffsets, type Member, startMember } from './member.ts'

let prefix = ''
let topic = ''
let member: Member | undefined

beforeEach(async () => {
  prefix = randomPrefix()
  topic = `${prefix}events`
  await createTopic(topic)
})

afterEach(async () => {
  await member?.consumer.stop()
  member = undefined
})

type Sends = (texts: readonly string[], key?: Buffer) => Promise<unknown>

/**
 * Begins a transaction with a new producer. The transaction stays open until `abort` or `commit` is called.
 */
async function begin(
  name: string,
): Promise<{ send: Sends; abort(): Promise<void>; commit(): Promise<void> }> {
  const producer = otherProgram().producer({ transactionalId: prefix + name, maxInFlightRequests: 1 })
  await producer.connect()
  const transaction = await producer.transaction()
  return {
    send: (texts, key) =>
      transaction.send({
        topic,
        messages: texts.map((value) => ({ value, ...(key !== undefined && { key }) })),
      }),
    async abort() {
      await transaction.abort()
      await producer.disconnect()
    },
    async commit() {
      await transaction.commit()
      await producer.disconnect()
    },
  }
}

/**
 * Starts a member of a group, and waits until it has settled all records. Returns the texts that the member
 * received.
 */
async function textsTaken(): Promise<string[]> {
  const { received, consumer } = (member = await startMember({
    groupId: `${prefix}group`,
    topics: [{ topic, waitMs: 0 }],
  }))
  await until('the last one came', () => received.some(({ text }) => text === 'last'))
  await until('the end is committed', async () => {
    await consumer.commit()
    const [at, end] = [await committedOffsets(`${prefix}group`, [topic]), await endOffsets([topic])]
    return at[`${topic}/0`] === end[`${topic}/0`]
  })
  return received.map(({ text }) => text.trimEnd())
}

/**
 * Returns a text so large that a fetch returns only one record with such a text. So the next fetch begins
 * within all open transactions.
 */
function large(text: string): string[] {
  return [text.padEnd(50_000)]
}

test('of two aborted transactions that were open at the same time nothing is taken, wherever a fetch begins', async () => {
  const [one, two] = [await begin('one'), await begin('two')]
  await one.send(large('one 1'))
  await two.send(large('two 1'))
  await two.send(large('two 2'))
  await produce(topic, [{ value: 'plain' }])
  await one.send(large('one 2'))
  await two.send(large('two 3'))
  await one.abort()
  await two.send(large('two 4'))
  await two.abort()
  await produce(topic, [{ value: 'last' }])
  expect(await textsTaken()).toEqual(['plain', 'last'])
})

test('a key of four zero bytes in an aborted transaction ends nothing: what follows in it is not taken either', async () => {
  const one = await begin('one')
  await one.send(['aborted 1'], Buffer.alloc(4))
  await one.send(['aborted 2'])
  await one.abort()
  await produce(topic, [{ value: 'last' }])
  expect(await textsTaken()).toEqual(['last'])
})

test('what was committed beside an aborted transaction is taken, once each', async () => {
  const [aborted, committed] = [await begin('aborted'), await begin('committed')]
  await aborted.send(['aborted 1'])
  await committed.send(['committed 1'], Buffer.alloc(4))
  await aborted.send(['aborted 2'])
  await aborted.abort()
  await committed.send(['committed 2'])
  await committed.commit()
  await produce(topic, [{ value: 'last' }])
  expect(await textsTaken()).toEqual(['committed 1', 'committed 2', 'last'])
})
