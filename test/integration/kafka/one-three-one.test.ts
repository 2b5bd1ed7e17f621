import { setTimeout as passTime } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { groupUnderLoad } from '../../support/group-under-load.ts'

/** For so long the group is left alone under load. */
const betweenMs = 4_000

test('from one worker to three and back to one under load, nothing is lost and nothing is repeated', async () => {
  const { gaps, repeats, changes } = await groupUnderLoad({
    title: 'from 1 to 3 to 1 workers',
    workers: 1,
    async play(group) {
      await passTime(betweenMs)
      await Promise.all([group.join(), group.join()])
      await passTime(betweenMs)
      // The one that was there before goes too.
      await Promise.all([group.leave(0), group.leave(1)])
      expect(group.size).toBe(1)
      await passTime(betweenMs)
    },
  })
  expect(changes.map(({ kind }) => kind).slice(0, 5)).toEqual(['join', 'join', 'join', 'leave', 'leave'])
  expect(gaps).toEqual([])
  expect(repeats).toEqual([])
}, 180_000)
