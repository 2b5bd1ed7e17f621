import { expect, test } from 'vitest'
import { startProgress } from '../../support/go-program.ts'
import { until } from '../../support/until.ts'

test('a long build says how many packages are compiled, then that it links them, and nothing after its end', async () => {
  const said: string[] = []
  const says = (pattern: RegExp) => () => said.some((line) => pattern.test(line))
  const progress = startProgress('kube', 2, { everyMs: 1, say: (line) => said.push(line) })
  progress.count()
  await until('it has counted one', says(/^kube: 1 of 2 packages are compiled after \d+ min \d+ s$/))
  progress.count()
  await until('it links', says(/^kube: Go links the program after \d+ min \d+ s$/))
  progress.stop()
  const { length } = said
  await new Promise((resolve) => setImmediate(resolve))
  expect(said).toHaveLength(length)
})
