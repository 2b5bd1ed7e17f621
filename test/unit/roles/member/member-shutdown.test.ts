import { expect, test } from 'vitest'
import { deferEnd, type MemberEnd } from '../../../../src/roles/member/member-shutdown.ts'
import { ShutdownTime } from '../../../../src/roles/member/shutdown-time.ts'
import { Parts } from '../../../../src/roles/start/parts.ts'

/** Ends a member, and returns the lines of the log, and what was called. */
async function end(shutdownMs: number, { consumer, pipeline }: Partial<MemberEnd> = {}) {
  const told: string[] = []
  const called: string[] = []
  const tell = (_fields: unknown, message?: string): void => void told.push(message ?? '')
  const parts = new Parts()
  const stalls = { isStopping: false }
  deferEnd({
    parts,
    log: { info: tell, warn: tell, error: tell },
    shutdownTime: new ShutdownTime(shutdownMs),
    stalls,
    consumer: {
      quiesce: () => void called.push('quiesce'),
      async commit() {
        called.push('commit')
      },
      async stop() {
        called.push('leave')
      },
      ...consumer,
    },
    pipeline: { held: { records: 3, bytes: 30 }, inFlight: 2, drain: async () => undefined, ...pipeline },
    intake: { stop: () => void called.push('stop intake') },
    waiting: {
      async flush() {
        called.push('flush')
      },
    },
    stopWriters: async () => undefined,
  })
  await parts.stop()
  expect(stalls.isStopping).toBe(true)
  return { told, called }
}

test('a member finishes what it has begun, commits it, and leaves', async () => {
  const { told, called } = await end(2_000)
  expect(told).toEqual(['draining'])
  expect(called).toEqual(['quiesce', 'stop intake', 'flush', 'commit', 'leave'])
})

test('deliveries that do not end in time are told, and the rest is committed', async () => {
  const never = new Promise<undefined>(() => undefined)
  const pipeline = { held: { records: 3, bytes: 30 }, inFlight: 2, drain: () => never }
  const { told, called } = await end(1_000, { pipeline })
  expect(told).toEqual([
    'draining',
    'stopping before all deliveries were finished: the rest will be repeated',
  ])
  expect(called).toEqual(['quiesce', 'stop intake', 'commit', 'leave'])
})

test('a last commit that is refused, as during a rebalance, is tried again', async () => {
  let tries = 0
  const consumer = {
    quiesce: () => undefined,
    async commit() {
      if (++tries < 3) throw new Error('the group is rebalancing')
    },
    stop: async () => undefined,
  }
  const { told } = await end(2_000, { consumer })
  expect(told).toEqual(['draining', 'the last commit was refused', 'the last commit was refused'])
})
