import { describe, expect, test } from 'vitest'
import { readTracing } from '../../../src/config/tracing-settings.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

function settingsOf(env: Record<string, string>) {
  const read = readTracing({ ...endpoint, ...env })
  if (read.kind !== 'on') throw new Error(JSON.stringify(read))
  return read.settings
}

describe('tracing is off', () => {
  test.each<[string, Record<string, string>]>([
    ['without an endpoint', {}],
    ['with an empty one', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
    ['with other variables alone', { OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }],
    ['where the SDK is disabled', { ...endpoint, OTEL_SDK_DISABLED: 'TRUE' }],
    ['where there is no exporter', { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
    // Nothing is traced without an endpoint, so no other setting has to be right.
    ['whatever else is wrong', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  ])('%s', (_what, env) => {
    expect(readTracing(env)).toEqual({ kind: 'off' })
  })
})

describe('tracing is on with an endpoint', () => {
  test('with the defaults that OpenTelemetry has', () => {
    expect(settingsOf({})).toEqual({
      endpoint: 'http://collector:4318/',
      sampler: { isParentBased: true, root: 'always_on', ratio: 1 },
      queueSize: 2_048,
      batchSize: 512,
      scheduleDelayMs: 5_000,
      exportTimeoutMs: 30_000,
    })
  })

  test('of traces alone too, which is told without a login or a query', () => {
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://me:key@collector/v1/traces?token=key' }
    expect(readTracing(env)).toMatchObject({
      kind: 'on',
      settings: { endpoint: 'https://collector/v1/traces' },
    })
  })

  test.each([
    ['always_off', undefined, { isParentBased: false, root: 'always_off', ratio: 1 }],
    ['traceidratio', '0.25', { isParentBased: false, root: 'traceidratio', ratio: 0.25 }],
    ['parentbased_traceidratio', '0', { isParentBased: true, root: 'traceidratio', ratio: 0 }],
    ['parentbased_traceidratio', undefined, { isParentBased: true, root: 'traceidratio', ratio: 1 }],
  ])('sampled by %s of %s', (name, arg, sampler) => {
    const given = arg === undefined ? {} : { OTEL_TRACES_SAMPLER_ARG: arg }
    expect(settingsOf({ OTEL_TRACES_SAMPLER: name, ...given }).sampler).toEqual(sampler)
  })
})

test.each([
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'http/json'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317'],
  ['OTEL_TRACES_EXPORTER', 'zipkin'],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
  ['OTEL_TRACES_SAMPLER', 'parentbased_'],
  ['OTEL_BSP_MAX_QUEUE_SIZE', '0'],
  ['OTEL_BSP_SCHEDULE_DELAY', '5s'],
])('%s=%s is a fault that names it', (name, value) => {
  const read = readTracing({ ...endpoint, [name]: value })
  expect(read).toMatchObject({ kind: 'faulty' })
  expect(JSON.stringify(read)).toContain(`${name}: set`)
})

test.each(['2', '-0.1', 'half'])('a share of %s is a fault, lest all or nothing is recorded', (share) => {
  const sampler = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: share }
  expect(readTracing({ ...endpoint, ...sampler })).toMatchObject({ kind: 'faulty' })
})
