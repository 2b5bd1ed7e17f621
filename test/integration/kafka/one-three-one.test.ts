import { setTimeout as passTime } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { underLoad } from '../../support/group-load.ts'

/** For so long the group is left alone under load. */
const betweenMs = 2_000

test('from one worker to three and back to one under load, nothing is lost and nothing is repeated', async () => {
  const { gaps, repeats, changes, produced, deliveries, longestPauseMs } = await underLoad({
    workers: 1,
    async change(group) {
      await passTime(betweenMs)
      await Promise.all([group.join(), group.join()])
      await passTime(betweenMs)
      // The one that was there before goes too.
      await Promise.all([group.leave(0), group.leave(1)])
      expect(group.size).toBe(1)
      await passTime(betweenMs)
    },
  })
  process.stdout.write(
    `from 1 to 3 to 1 workers: ${produced} messages, ${deliveries} deliveries, ${gaps.length} lost, ${repeats.length} repeated, ` +
      `${longestPauseMs} ms without any at the most\n`,
  )
  expect(changes.map(({ kind }) => kind).slice(0, 5)).toEqual(['join', 'join', 'join', 'leave', 'leave'])
  expect(gaps).toEqual([])
  expect(repeats).toEqual([])
}, 180_000)
