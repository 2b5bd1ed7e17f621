import { expect, test } from 'vitest'
import { AtOnce } from '../../../src/admin/at-once.ts'
import { type AdminAnswer, done } from '../../../src/admin/problem.ts'

test('one token keeps out neither all others nor itself for good', async () => {
  const atOnce = new AtOnce({ most: 3, mostOfToken: 2, what: 'counts', waitMs: 10 })
  const ending = Promise.withResolvers<AdminAnswer>()
  const call = (token: string) => atOnce.run(token, () => ending.promise)
  const running = [call('ann'), call('ann'), call('bob')]
  const busy = { status: 429, headers: { 'retry-after': '5' } }
  expect(await call('ann')).toMatchObject(busy)
  expect((await call('ann')).body).toMatchObject({
    detail: expect.stringContaining('2 counts of this token'),
  })
  expect(await call('bob')).toMatchObject({
    ...busy,
    body: { detail: expect.stringContaining('3 counts are under') },
  })
  ending.resolve(done({}))
  await Promise.all(running)
  expect(await call('ann')).toMatchObject({ status: 200 })
})

test('whoever runs the fewest gets the next place, however many others ask', async () => {
  const atOnce = new AtOnce({ most: 4, mostOfToken: 2, what: 'counts' })
  const begun: string[] = []
  const call = (share: string) => {
    const ending = Promise.withResolvers<AdminAnswer>()
    const answer = atOnce.run(share, () => {
      begun.push(share)
      return ending.promise
    })
    return { answer, end: () => ending.resolve(done({})) }
  }
  const running = ['ann', 'ann', 'bob', 'bob'].map(call)
  // Neither of the two that have all places can wait for more of them.
  expect(await call('ann').answer).toMatchObject({ status: 429 })
  const waiting = ['cat', 'cat', 'dan'].map(call)
  for (const one of running.slice(0, 3)) {
    one.end()
    await one.answer
  }
  expect(begun.slice(4)).toEqual(['cat', 'dan', 'cat'])
  for (const one of [...running, ...waiting]) one.end()
  for (const { answer } of waiting) expect(await answer).toMatchObject({ status: 200 })
})

test('a call that fails is over', async () => {
  const atOnce = new AtOnce({ most: 1, mostOfToken: 1, what: 'counts' })
  await expect(atOnce.run('ann', () => Promise.reject(new TypeError('a bug')))).rejects.toThrow('a bug')
  expect(await atOnce.run('ann', async () => done({}))).toMatchObject({ status: 200 })
})
