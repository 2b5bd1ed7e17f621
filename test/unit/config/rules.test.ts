import { expect, test } from 'vitest'
import { loginWarnings } from '../../../src/config/rules.ts'
import { readConfig } from '../../../src/config/read.ts'

function read(settings: Readonly<Record<string, string>>) {
  const env = Object.entries(settings).map(([name, value]) => [`SLUICE_KAFKA_${name}`, value])
  return readConfig({ env: Object.fromEntries(env) })
}

/** Returns the faults, without the first line of the message and without indents. */
function faults(settings: Readonly<Record<string, string>>): string[] {
  const result = read(settings)
  return result.ok
    ? []
    : result.message
        .split('\n')
        .slice(1)
        .map((line) => line.trim())
}

const oauth = {
  SASL_MECHANISM: 'oauthbearer',
  OAUTH_TOKEN_URL: 'https://login.example.com/token',
  OAUTH_CLIENT_ID: 'sluice',
  OAUTH_CLIENT_SECRET_FILE: '/run/secret',
}

test.each([
  { name: 'nothing', settings: {} },
  { name: 'a password', settings: { SASL_MECHANISM: 'plain', SASL_USERNAME: 'u', SASL_PASSWORD: 'p' } },
  {
    name: 'a password in a file',
    settings: { SASL_MECHANISM: 'scram-sha-256', SASL_USERNAME: 'u', SASL_PASSWORD_FILE: '/p' },
  },
  { name: 'tokens', settings: { ...oauth, OAUTH_SCOPE: 's', OAUTH_EXTENSIONS: 'logicalCluster=lkc-1' } },
  { name: 'tokens of an endpoint with an authority of its own', settings: { ...oauth, CA_FILE: '/ca' } },
  { name: 'AWS', settings: { SSL: 'true', SASL_MECHANISM: 'aws-iam', AWS_REGION: 'eu-central-1' } },
  {
    name: 'a client certificate',
    settings: { SSL: 'true', CERT_FILE: '/c', KEY_FILE: '/k', CA_FILE: '/ca' },
  },
])('what belongs together is taken: $name', ({ settings }) => {
  expect(faults(settings)).toEqual([])
})

test.each([
  [
    { SASL_MECHANISM: 'plain', SASL_USERNAME: 'u' },
    'kafka.saslPassword (SLUICE_KAFKA_SASL_PASSWORD): is not set',
  ],
  [{ SASL_PASSWORD_FILE: '/p' }, 'kafka.saslPasswordFile (SLUICE_KAFKA_SASL_PASSWORD_FILE): is set while'],
  [
    { SASL_MECHANISM: 'plain', SASL_USERNAME: 'u', SASL_PASSWORD: 'p', SASL_PASSWORD_FILE: '/p' },
    'kafka.saslPasswordFile (SLUICE_KAFKA_SASL_PASSWORD_FILE): is set beside kafka.saslPassword',
  ],
  [{ SASL_MECHANISM: 'aws-iam' }, 'kafka.awsRegion (SLUICE_KAFKA_AWS_REGION): is not set'],
  [{ ...oauth, SASL_USERNAME: 'u' }, 'kafka.saslUsername (SLUICE_KAFKA_SASL_USERNAME): is set while'],
  [{ OAUTH_SCOPE: 's' }, 'kafka.oauthScope (SLUICE_KAFKA_OAUTH_SCOPE): is set while'],
  [{ CA_FILE: '/ca' }, 'kafka.caFile (SLUICE_KAFKA_CA_FILE): is set while kafka.ssl is false'],
  [{ SSL: 'true', CERT_FILE: '/c' }, 'kafka.keyFile (SLUICE_KAFKA_KEY_FILE): is not set'],
  [{ ...oauth, OAUTH_EXTENSIONS: 'auth=x' }, 'kafka.oauthExtensions (SLUICE_KAFKA_OAUTH_EXTENSIONS): env'],
])('what does not belong together is refused: %j', (settings, expected) => {
  expect(faults(settings)).toEqual([expect.stringContaining(expected)])
})

function warningsOf(settings: Readonly<Record<string, string>>): readonly string[] {
  const result = read(settings)
  return result.ok ? loginWarnings(result.config.kafka) : [result.message]
}

test('a password or a token in the clear is warned of', () => {
  const plain = { SASL_MECHANISM: 'plain', SASL_USERNAME: 'u', SASL_PASSWORD: 'p' }
  expect(warningsOf(plain)).toEqual([expect.stringContaining('SLUICE_KAFKA_SSL=true')])
  expect(warningsOf(plain)).toEqual([
    expect.stringContaining('goes to the brokers in the clear, where everybody on the way can read it'),
  ])
  expect(warningsOf(oauth)).toEqual([expect.stringContaining('the token')])
  expect(warningsOf({ ...plain, SSL: 'true' })).toEqual([])
  expect(warningsOf({ ...plain, SASL_MECHANISM: 'scram-sha-256' })).toEqual([])
})

function readIndexed(fields: string) {
  return readConfig({ env: { SLUICE_ATTEMPTS_INDEX: fields } })
}

test('at most eight fields of messages are indexed, and each is the path of a field', () => {
  const nine = Array.from({ length: 9 }, (_, index) => `properties.f${index}`)
  expect(readIndexed(nine.slice(1).join(','))).toMatchObject({
    ok: true,
    config: { attempts: { index: nine.slice(1) } },
  })
  expect(readIndexed('properties["order id"]')).toMatchObject({ ok: true })
  for (const [given, words] of [
    [nine.join(','), 'has more than 8 fields'],
    ['properties..a', 'fields of messages such as properties.orderId'],
    ['=4711', 'fields of messages such as properties.orderId'],
  ] as const)
    expect(readIndexed(given)).toMatchObject({ ok: false, message: expect.stringContaining(words) })
})
