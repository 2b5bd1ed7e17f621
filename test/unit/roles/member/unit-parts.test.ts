import { expect, test } from 'vitest'
import { unitPorts } from '../../../../src/roles/member/unit-parts.ts'

/**
 * Starts parts that note which of them have a unit. The audiences and the first syncs are prepared only when
 * their promise in `ready` resolves.
 */
function startParts() {
  const having = new Set<string>()
  const ready = { audiences: Promise.withResolvers<void>(), firstSyncs: Promise.withResolvers<void>() }
  const partOf = (name: string) => ({
    acquire: (): void => void having.add(name),
    release: async (): Promise<void> => void having.delete(name),
  })
  const ports = unitPorts({
    waiting: { ...partOf('waiting'), prepare: () => Promise.resolve() },
    audiences: { ...partOf('audiences'), prepare: () => ready.audiences.promise },
    firstSyncs: {
      ...partOf('first syncs'),
      acquire() {
        having.add('first syncs')
        return ready.firstSyncs.promise
      },
    },
    counter: partOf('counter'),
    replays: partOf('replays'),
    notices: { ...partOf('notices'), release: () => void having.delete('notices') },
  })
  return { having, ready, ports }
}

test('all parts get a unit, and all lose it', async () => {
  const { having, ready, ports } = startParts()
  ready.audiences.resolve()
  ready.firstSyncs.resolve()
  await ports.prepare(0)
  expect([...having]).toEqual(['first syncs', 'counter', 'replays', 'notices'])
  await ports.released(0)
  expect([...having]).toEqual([])
})

test.each(['audiences', 'firstSyncs'] as const)(
  'a unit that is lost while the %s prepare it stays with no part',
  async (slow) => {
    const { having, ready, ports } = startParts()
    if (slow === 'firstSyncs') ready.audiences.resolve()
    const preparing = ports.prepare(0)
    await new Promise(setImmediate)
    await ports.released(0)
    ready.audiences.resolve()
    ready.firstSyncs.resolve()
    await preparing
    expect([...having]).toEqual([])
  },
)
