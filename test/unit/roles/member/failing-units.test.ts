import { beforeEach, expect, test } from 'vitest'
import { topicNames } from '../../../../src/topics/topics.ts'
import { workerObstacles } from '../../../../src/roles/start/readiness.ts'
import { FailingUnits } from '../../../../src/roles/member/failing-units.ts'
import { quietLog } from '../../../support/emitted-lines.ts'

const topics = topicNames({ prefix: '', generation: 1 })
const log = quietLog

let failingUnits: FailingUnits

beforeEach(() => {
  failingUnits = new FailingUnits({ log, topics })
})

function change(topic: string, partition: number, isFailing: boolean): void {
  failingUnits.changed({ topic, partition, reason: `${topic}/${partition} has no leader` }, isFailing)
}

function obstacles(stalledBy = ''): readonly string[] {
  const member = { preparing: [], isWaitingForPredecessor: false, isJoined: true, obstacles: [] }
  return workerObstacles(member, { isStopping: false, stalledBy, unreachableBy: '' }, failingUnits)
}

test('a worker whose units all stand still is not ready, and says why', () => {
  failingUnits.assigned([1, 4])
  change('retry.1m', 1, true)
  change('retry.1h', 1, true)
  expect(obstacles()).toEqual([])
  change('dead-letters', 4, true)
  expect(obstacles()).toEqual([
    'Kafka does not accept writes: retry.1m/1 has no leader; retry.1h/1 has no leader; dead-letters/4 has no leader',
  ])
  change('dead-letters', 4, false)
  expect(obstacles()).toEqual([])
})

test('units of others, and topics that stop no unit, are no reason', () => {
  change('retry.1m', 1, true)
  change('backfills', 0, true)
  expect(obstacles()).toEqual([])
  failingUnits.assigned([0])
  expect(obstacles()).toEqual([])
  failingUnits.assigned([1])
  expect(obstacles()).toHaveLength(1)
  failingUnits.assigned([0, 1])
  expect(obstacles()).toEqual([])
})

test('while Kafka takes nothing at all, that is the one reason', () => {
  failingUnits.assigned([1])
  change('retry.1m', 1, true)
  expect(obstacles('no broker answers')).toEqual(['Kafka does not accept writes: no broker answers'])
})

test('a part that starts late learns of the units that have to stop, and then of each change', () => {
  change('retry.1m', 1, true)
  const told: [number, boolean][] = []
  failingUnits.onChange((unit, isStopped) => told.push([unit, isStopped]))
  change('dead-letters', 4, true)
  change('retry.1m', 1, false)
  failingUnits.assigned([4])
  expect(told).toEqual([
    [1, true],
    [4, true],
    [1, false],
    [4, true],
  ])
})
