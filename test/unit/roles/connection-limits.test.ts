import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readConfig } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'
import { connectionLimits } from '../../../src/roles/connection-limits.ts'

function config(variables: Record<string, string> = {}): Config {
  const read = readConfig({ env: { SLUICE_KAFKA_BROKERS: '127.0.0.1:9092', ...variables } })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

function limits(openFiles: number, { hasGateway = false } = {}) {
  const warned: string[] = []
  const log = { warn: (_fields: object, text: string) => void warned.push(text) }
  const { bulkhead, open } = connectionLimits(config(), { openFiles, hasGateway }, log)
  return { sick: bulkhead.maxInFlight, ...open, warnings: warned.length }
}

test('as many connections as configured, if the system allows enough files', () => {
  const { delivery } = config()
  const configured = { sick: delivery.maxInFlightSick, maxIdle: delivery.maxIdleConnections, warnings: 0 }
  expect(limits(Number.POSITIVE_INFINITY)).toEqual({ ...configured, maxOpen: Number.POSITIVE_INFINITY })
  expect(limits(65_536)).toMatchObject(configured)
  expect(limits(20_000)).toMatchObject(configured)
})

test.each([
  // openFiles, sick, maxIdle, maxOpen, warnings
  [16_384, 8_192, 10_000, 15_776, 0],
  [10_000, 5_000, 9_392, 9_392, 2],
  [4_096, 2_048, 3_488, 3_488, 2],
  [1_024, 256, 768, 768, 2],
])(
  'of %i files, the parts of the process get what they need',
  (openFiles, sick, maxIdle, maxOpen, warnings) => {
    expect(limits(openFiles)).toEqual({ sick, maxIdle, maxOpen, warnings })
  },
)

test('the clients of a gateway in the same process need files too', () => {
  expect(limits(40_000, { hasGateway: true }).maxOpen).toBe(40_000 - 10_000)
  expect(limits(1_048_576, { hasGateway: true }).maxOpen).toBe(1_048_576 - 608 - 10_000)
})

test('requests in flight never need more files than there are', () => {
  const { maxInFlight } = config().delivery
  fc.assert(
    fc.property(fc.integer({ min: 1_024, max: 200_000 }), (openFiles) => {
      const { sick, maxOpen } = limits(openFiles)
      expect(sick + maxInFlight).toBeLessThanOrEqual(maxOpen)
      expect(maxOpen).toBeLessThan(openFiles)
    }),
  )
})
