import { expect, it } from 'vitest'
import { describeConfig, settingsOf } from '../../../src/config/describe.ts'
import { readConfig, type ConfigInput } from '../../../src/config/read.ts'
import { configKeys } from '../../../src/config/schema.ts'

function described(input: ConfigInput) {
  const read = readConfig({ env: {}, ...input })
  if (!read.ok) throw new Error(read.message)
  return describeConfig(read)
}

it('shows each key with its value and where that is from', () => {
  const rows = described({ env: { SLUICE_RETRY_LADDER: '1s,90s' }, flags: { deliveryBufferBytes: '128MiB' } })
  expect(rows).toHaveLength(configKeys.length)
  expect(rows).toEqual(
    expect.arrayContaining([
      { key: 'retry.ladder', value: '1s,90s', source: 'env SLUICE_RETRY_LADDER' },
      { key: 'delivery.bufferBytes', value: '128MiB', source: 'flag --delivery-buffer-bytes' },
      { key: 'retry.limit', value: '4h', source: 'default' },
      { key: 'kafka.brokers', value: '(none)', source: 'default' },
      { key: 'kafka.saslPassword', value: '(not set)', source: 'default' },
    ]),
  )
})

it('shows of a secret only that it is set', () => {
  const rows = described({
    env: {
      SLUICE_KAFKA_SASL_MECHANISM: 'plain',
      SLUICE_KAFKA_SASL_USERNAME: 'me',
      SLUICE_KAFKA_SASL_PASSWORD: 'hunter2',
    },
  })
  expect(rows).toContainEqual({
    key: 'kafka.saslPassword',
    value: '(set)',
    source: 'env SLUICE_KAFKA_SASL_PASSWORD',
  })
  expect(JSON.stringify(rows)).not.toContain('hunter2')
})

it('shows values as a variable would take them', () => {
  const rows = described({})
  const env = Object.fromEntries(
    rows
      .filter(({ value }) => !value.startsWith('('))
      .map(({ key, value }) => [configKeys.find(({ name }) => name === key)?.variable ?? '', value]),
  )
  expect(described({ env }).map(({ value }) => value)).toEqual(rows.map(({ value }) => value))
})

it('writes the settings that differ from their defaults so that they are read as the same', () => {
  const env = {
    SLUICE_KAFKA_BROKERS: 'a:9092,b:9092',
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_GATEWAY_SHUTDOWN_DELAY: '0s',
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8,::1/128',
    SLUICE_KAFKA_SASL_MECHANISM: 'plain',
    SLUICE_KAFKA_SASL_USERNAME: 'me',
    SLUICE_KAFKA_SASL_PASSWORD: 'hunter2',
  }
  const read = readConfig({ env })
  const settings = settingsOf(read.ok ? read.config : expect.fail(read.message))
  const { SLUICE_KAFKA_SASL_PASSWORD: _, ...plain } = env
  expect(settings).toEqual(plain)
})
