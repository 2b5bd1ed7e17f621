import { expect, onTestFinished, test } from 'vitest'
import { sharedInstance } from '../../../src/kafka/former-self.ts'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { beginMember, startMember, workerKafka } from './member.ts'

const name = 'sluice-pod-0-1'

test('two members of one name that both live: nothing is lost, and it is said', async () => {
  const prefix = randomPrefix()
  const topic = `${prefix}events`
  await createTopic(topic)
  const errors: string[] = []
  const options = {
    groupId: `${prefix}group`,
    topics: [{ topic, waitMs: 0 }],
    isOwnName: (clientId: string) => clientId === name,
    // The session of one that lives has no end.
    sessionTimeoutMs: 60_000,
    handoverMs: 0,
    log: {
      info() {},
      warn() {},
      error(_fields: object, message: string) {
        errors.push(message)
      },
    },
  }
  const first = await startMember({ ...options, kafka: workerKafka(name) })
  onTestFinished(() => first.consumer.stop())
  expect(errors).toEqual([])
  const second = await beginMember({ ...options, kafka: workerKafka(name) })
  onTestFinished(() => second.consumer.stop())
  await until('the other one is found', () => errors.length > 0)
  expect(new Set(errors)).toEqual(new Set([sharedInstance]))

  await produce(
    topic,
    Array.from({ length: 100 }, (_, index) => ({ value: String(index) })),
  )
  const seen = () => new Set([...first.received, ...second.received].map(({ text }) => text)).size
  await until('all has come', () => seen() === 100)
})
