import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { InOrder } from '../../../src/async/in-order.ts'

test('results of a key are handled in the order of their promises, and those of other keys at once', async () => {
  const inOrder = new InOrder()
  const done: string[] = []
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const add = (key: string, result: Promise<string>): void =>
    inOrder.add(key, result, (one) => void done.push(one))
  add('a', first.promise)
  add('a', second.promise)
  add('b', Promise.resolve('b1'))
  second.resolve('a2')
  await turn()
  expect([done, inOrder.has('a'), inOrder.has('b')]).toEqual([['b1'], true, false])
  first.resolve('a1')
  await turn()
  expect([done, inOrder.has('a')]).toEqual([['b1', 'a1', 'a2'], false])
})
