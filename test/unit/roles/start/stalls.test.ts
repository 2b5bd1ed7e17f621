import { expect, test } from 'vitest'
import { Stalls } from '../../../../src/roles/start/stalls.ts'

const log = { info() {}, warn() {}, error() {} }

test('a pipeline that starts while Kafka accepts no writes is stalled from its start', () => {
  const stalls = new Stalls(log)
  stalls.setUnwritable(true, 'no partition takes records')
  const told: boolean[] = []
  stalls.onChange((isStalled) => told.push(isStalled))
  expect(told).toEqual([true])
  stalls.setUnreachable('the proxy refuses')
  stalls.setUnwritable(false, '')
  stalls.setUnreachable('')
  expect(told).toEqual([true, true, true, false])
})

test('a pipeline that starts while nothing is wrong is told nothing', () => {
  const told: boolean[] = []
  new Stalls(log).onChange((isStalled) => told.push(isStalled))
  expect(told).toEqual([])
})
