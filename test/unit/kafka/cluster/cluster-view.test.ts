import { expect, onTestFinished, test, vi } from 'vitest'
import { createClusterView } from '../../../../src/kafka/cluster/cluster-view.ts'
import { kafkaOf, nothing } from '../scripted-kafka.ts'

const log = { warn: nothing, error: nothing }

test('a view that connects again and again, because its topic is missing, has one timer', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const cluster = { addMultipleTargetTopics: nothing }
  const view = createClusterView({ kafka: kafkaOf([cluster]), topics: ['attempts'], log })
  for (let tries = 0; tries < 5; tries++) await view.connect()
  expect(vi.getTimerCount()).toBe(1)
  await view.close()
  expect(vi.getTimerCount()).toBe(0)
  await view.connect()
  expect(vi.getTimerCount()).toBe(0)
})
