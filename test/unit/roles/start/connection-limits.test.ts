import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import type { Config } from '../../../../src/config/schema.ts'
import { connectionLimits, maxClients } from '../../../../src/roles/start/connection-limits.ts'

function config(variables: Record<string, string> = {}): Config {
  const read = readConfig({ env: { SLUICE_KAFKA_BROKERS: '127.0.0.1:9092', ...variables } })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

function limits(openFiles: number, { hasGateway = false } = {}) {
  const warned: string[] = []
  const log = { warn: (_fields: object, text: string) => void warned.push(text) }
  const { maxInFlight, bulkhead, open } = connectionLimits(config(), { openFiles, hasGateway }, log)
  return { maxInFlight, sick: bulkhead.maxInFlight, ...open, warnings: warned.length }
}

test('as many connections as configured, if the system allows enough files', () => {
  const { delivery } = config()
  const configured = {
    maxInFlight: delivery.maxInFlight,
    sick: delivery.maxInFlightSick,
    maxIdle: delivery.maxIdleConnections,
    warnings: 0,
  }
  expect(limits(Number.POSITIVE_INFINITY)).toEqual({ ...configured, maxOpen: Number.POSITIVE_INFINITY })
  expect(limits(65_536)).toMatchObject(configured)
  expect(limits(20_000)).toMatchObject(configured)
})

test.each([
  [16_384, { maxInFlight: 512, sick: 8_192, maxIdle: 10_000, maxOpen: 14_672, warnings: 0 }],
  [10_000, { maxInFlight: 512, sick: 7_776, maxIdle: 8_288, maxOpen: 8_288, warnings: 1 }],
  [4_096, { maxInFlight: 512, sick: 2_560, maxIdle: 3_072, maxOpen: 3_072, warnings: 1 }],
  [1_024, { maxInFlight: 384, sick: 384, maxIdle: 768, maxOpen: 768, warnings: 1 }],
  [256, { maxInFlight: 88, sick: 88, maxIdle: 176, maxOpen: 176, warnings: 1 }],
])('of %i files, the parts of the process get what they need', (openFiles, expected) => {
  expect(limits(openFiles)).toEqual(expected)
})

test('the clients of a gateway in the same process need files too', () => {
  expect(limits(40_000, { hasGateway: true }).maxOpen).toBe(40_000 - 10_000)
  expect(limits(1_048_576, { hasGateway: true }).maxOpen).toBe(1_048_576 - 1_712 - 10_000)
})

test.each([
  [Number.POSITIVE_INFINITY, 10_000, 0],
  [20_000, 10_000, 0],
  [4_096, 3_584, 1],
  [1_024, 768, 1],
])('of %i files, the clients of a gateway get what it leaves', (openFiles, expected, warnings) => {
  const warned: string[] = []
  const log = { warn: (_fields: object, text: string) => void warned.push(text) }
  expect([maxClients(config(), openFiles, log), warned.length]).toEqual([expected, warnings])
  for (const warning of warned)
    expect(warning).toBe(
      'fewer connections of clients than gateway.maxConnections: the system allows too few open files (ulimit -n)',
    )
})

test('requests in flight never need more files than there are', () => {
  fc.assert(
    fc.property(fc.integer({ min: 128, max: 200_000 }), (openFiles) => {
      const { maxInFlight, sick, maxOpen } = limits(openFiles)
      expect(sick + maxInFlight).toBeLessThanOrEqual(maxOpen)
      expect(maxOpen).toBeLessThan(openFiles)
    }),
  )
})
