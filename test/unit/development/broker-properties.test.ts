import { expect, test } from 'vitest'
import {
  brokerProperties,
  renderEnvironment,
  renderProperties,
} from '../../../src/development/broker-properties.ts'

const place = {
  id: 1,
  voters: ['1@127.0.0.1:21001'],
  listeners: ['PLAINTEXT://127.0.0.1:21000', 'CONTROLLER://127.0.0.1:21001'],
  advertised: ['PLAINTEXT://127.0.0.1:21000'],
  interBroker: 'PLAINTEXT',
  logDir: '/data',
}

test('one broker keeps one copy of the internal topics', () => {
  expect(brokerProperties({ ...place, count: 1 })).toMatchObject({
    'offsets.topic.replication.factor': '1',
    'min.insync.replicas': '1',
  })
})

test('three brokers keep three copies, and take a write when two have it', () => {
  expect(brokerProperties({ ...place, count: 3 })).toMatchObject({
    'default.replication.factor': '3',
    'offsets.topic.replication.factor': '3',
    'transaction.state.log.replication.factor': '3',
    'transaction.state.log.min.isr': '2',
    'min.insync.replicas': '2',
  })
})

test('the image reads back from its environment the names that were meant', () => {
  const properties = brokerProperties({ ...place, count: 1 })
  const environment = renderEnvironment(properties)
  // The image reads a single underscore as a dot.
  const names = Object.keys(environment).map((name) =>
    name.replace('KAFKA_', '').replaceAll('_', '.').toLowerCase(),
  )
  expect(names).toEqual(Object.keys(properties))
  expect(Object.values(environment)).toEqual(Object.values(properties))
})

test('a properties file has a line for each setting, backslashes doubled', () => {
  expect(renderProperties({ 'log.dirs': 'C:\\data', 'node.id': '1' })).toBe(
    'log.dirs=C:\\\\data\nnode.id=1\n',
  )
})
