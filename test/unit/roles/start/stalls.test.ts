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

test('each reason to stand still is told when it begins and when it ends', () => {
  const lines: string[] = []
  const say = (...given: unknown[]): void => void lines.push(String(given.at(-1)))
  const stalls = new Stalls({ info: say, warn: say, error: say })
  stalls.setUnwritable(true, 'no partition takes records')
  stalls.setUnwritable(false, '')
  stalls.setSilent(true)
  stalls.setSilent(false)
  expect(lines).toEqual([
    'Kafka does not accept writes: fetching stops until it does',
    'Kafka accepts writes again',
    'the group coordinator has not answered for a session: this worker starts nothing until it does, since others may own its partitions',
    'the group coordinator answers again',
  ])
})
