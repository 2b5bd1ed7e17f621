import { expect, it } from 'vitest'
import { nearest } from '../../../src/catalog/nearest.ts'

it('counts two letters that have changed places as one mistake', () => {
  expect(nearest('lgo', ['log', 'up'])).toBe('log')
})

const known = ['SLUICE_KAFKA_BROKERS', 'SLUICE_KAFKA_GROUP_ID', 'SLUICE_HTTP_PORT']

it.each([
  ['SLUICE_KAFKA_BROKER', 'SLUICE_KAFKA_BROKERS'],
  ['SLUICE_KAFKA_GROUPID', 'SLUICE_KAFKA_GROUP_ID'],
  ['SLUICE_PORT', undefined],
  ['SLUICE_HTTP_PROT', 'SLUICE_HTTP_PORT'],
  ['', undefined],
])('finds for %s %s', (given, meant) => {
  expect(nearest(given, known)).toBe(meant)
})
