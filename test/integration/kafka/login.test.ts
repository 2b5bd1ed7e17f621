import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { loginWarnings } from '../../../src/config/rules.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { openKafka } from '../../../src/roles/start/ask-kafka.ts'
import { createAuthority, dayMs } from '../../support/certificates.ts'
import { type GuardedKafka, startGuardedKafka, user } from '../../support/guarded-kafka.ts'
import { startSilentBroker } from '../../support/silent-broker.ts'
import { startTokenServer } from '../../support/token-server.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'

let kafka: GuardedKafka

beforeAll(async () => {
  kafka = await startGuardedKafka()
})

afterAll(() => kafka.stop())

const warnings: string[] = []
const log = { warn: (_: object, message: string) => void warnings.push(message), debug() {} }

beforeEach(() => {
  warnings.length = 0
  Object.assign(kafka.tokens, { refusal: undefined, isForging: false, lifeSeconds: 300 })
})

function configOf(settings: Readonly<Record<string, string>>): Config {
  const env = Object.entries(settings).map(([name, value]) => [`SLUICE_KAFKA_${name}`, value])
  const read = readConfig({ env: Object.fromEntries(env) })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

/** Starts a role. Returns the error, or `let in` if there was none. */
async function start(settings: Readonly<Record<string, string>>): Promise<string> {
  try {
    const client = await openKafka(configOf(settings), log, 'send')
    await withAdmin(client, (admin) => admin.listTopics())
    return 'let in'
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  }
}

function ca(): string {
  return kafka.file('authority-copy.pem', kafka.authority.cert)
}

const tls = () => ({ BROKERS: kafka.at.TLS, SSL: 'true', CA_FILE: ca() })
const scram = () => ({
  BROKERS: kafka.at.SCRAM,
  SSL: 'true',
  CA_FILE: ca(),
  SASL_MECHANISM: 'scram-sha-512',
  SASL_USERNAME: user.name,
  SASL_PASSWORD: user.password,
})
const oauth = () => ({
  BROKERS: kafka.at.OAUTH,
  SASL_MECHANISM: 'oauthbearer',
  OAUTH_TOKEN_URL: `${kafka.tokens.origin}/token`,
  OAUTH_CLIENT_ID: 'sluice',
  OAUTH_CLIENT_SECRET: 'secret',
  // Only this test has this scope, so no other test has already fetched its token.
  OAUTH_SCOPE: `scope-${Math.random()}`,
})

function encrypted(key: string, passphrase: string): string {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase } as const
  return createPrivateKey(key).export(options).toString()
}

test('a certificate of a private authority is trusted where kafka.caFile names the authority', async () => {
  expect(await start(tls())).toBe('let in')
})

test('without kafka.caFile the error names it', async () => {
  const { CA_FILE: _, ...settings } = tls()
  expect(await start(settings)).toMatch(
    /^StartError: Kafka at .* its certificate is not trusted: .*SLUICE_KAFKA_CA_FILE/,
  )
})

test('a host that the certificate is not for is said, and kafka.serverName says what it is for', async () => {
  const settings = { ...tls(), BROKERS: kafka.at.TLS.replace('127.0.0.1', 'localhost') }
  expect(await start(settings)).toMatch(/^StartError: .*another name: .*SLUICE_KAFKA_SERVER_NAME/)
  expect(await start({ ...settings, SERVER_NAME: 'kafka.internal' })).toBe('let in')
})

test('TLS to a port without it is said', async () => {
  expect(await start({ ...tls(), BROKERS: kafka.direct })).toMatch(/^StartError: .*speaks no TLS.*kafka\.ssl/)
})

test('a file that is not there, or holds something else, is named with its setting', async () => {
  const empty = kafka.file('empty.pem', '')
  expect(await start({ ...tls(), CA_FILE: '/nowhere/ca.pem' })).toBe(
    'StartError: kafka.caFile (SLUICE_KAFKA_CA_FILE): /nowhere/ca.pem can not be used (ENOENT)',
  )
  expect(await start({ ...tls(), CA_FILE: empty })).toContain('SLUICE_KAFKA_CA_FILE')
  const { SASL_PASSWORD: _, ...login } = scram()
  expect(await start({ ...login, SASL_PASSWORD_FILE: empty })).toContain('it is empty')
})

test('a client certificate of the right authority is let in, and one of another or none is not', async () => {
  const own = kafka.authority.issue({ names: ['sluice'] })
  const foreign = createAuthority('another').issue({ names: ['sluice'] })
  const withIdentity = ({ cert, key }: typeof own) => ({
    ...tls(),
    BROKERS: kafka.at.MTLS,
    CERT_FILE: kafka.file('client.pem', cert),
    KEY_FILE: kafka.file('client.key', key),
  })
  expect(await start(withIdentity(own))).toBe('let in')
  const refused = /^StartError: .*kafka\.certFile and kafka\.keyFile/
  expect(await start(withIdentity(foreign))).toMatch(refused)
  expect(await start({ ...tls(), BROKERS: kafka.at.MTLS })).toMatch(refused)
})

test('the index of the delivery log shows when its client certificate expires', async () => {
  const { cert, key } = kafka.authority.issue({ names: ['sluice'], untilMs: 3 * dayMs })
  const folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  const index = await startSluice(
    {
      SLUICE_INDEX_FOLDER: folder,
      SLUICE_KAFKA_BROKERS: kafka.at.MTLS,
      SLUICE_KAFKA_SSL: 'true',
      SLUICE_KAFKA_CA_FILE: ca(),
      SLUICE_KAFKA_CERT_FILE: kafka.file('client.pem', cert),
      SLUICE_KAFKA_KEY_FILE: kafka.file('client.key', key),
    },
    { role: 'log serve', isUnready: true },
  )
  onTestFinished(async () => {
    await index.kill()
    rmSync(folder, { recursive: true })
  })
  const expiresS = await index.metric('sluice_certificate_expiry_timestamp_seconds')
  expect(Math.abs(expiresS * 1_000 - Date.now() - 3 * dayMs)).toBeLessThan(60_000)
})

test('the key of a client certificate may have a password', async () => {
  const { cert, key } = kafka.authority.issue({ names: ['sluice'] })
  const settings = {
    ...tls(),
    BROKERS: kafka.at.MTLS,
    CERT_FILE: kafka.file('client.pem', cert),
    KEY_FILE: kafka.file('encrypted.key', encrypted(key, 'key-secret')),
  }
  expect(await start({ ...settings, KEY_PASSWORD_FILE: kafka.file('key-password', 'key-secret\n') })).toBe(
    'let in',
  )
  expect(await start({ ...settings, KEY_PASSWORD: 'wrong' })).toContain('SLUICE_KAFKA_KEY_FILE')
})

test('a key of another certificate is said', async () => {
  const { cert } = kafka.authority.issue({ names: ['sluice'] })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const settings = {
    ...tls(),
    CERT_FILE: kafka.file('client.pem', cert),
    KEY_FILE: kafka.file('other.key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  }
  expect(await start(settings)).toContain('do not belong together')
})

test.each(['scram-sha-256', 'scram-sha-512'])(
  '%s over TLS lets in with the right password',
  async (mechanism) => {
    expect(await start({ ...scram(), SASL_MECHANISM: mechanism })).toBe('let in')
    const wrong = await start({ ...scram(), SASL_MECHANISM: mechanism, SASL_PASSWORD: 'wrong-secret' })
    expect(wrong).toMatch(/^StartError: .*failed.*kafka\.saslPassword/)
    expect(wrong).not.toContain('wrong-secret')
  },
)

test('a mechanism that the broker does not take is said', async () => {
  expect(await start({ ...scram(), SASL_MECHANISM: 'plain' })).toMatch(/^StartError: .*kafka\.saslMechanism/)
})

test('a password in a file is read again at each login: a new one needs no restart', async () => {
  const { SASL_PASSWORD: _, ...login } = scram()
  const path = kafka.file('password', 'one-that-was\n')
  const settings = { ...login, SASL_PASSWORD_FILE: path }
  expect(await start(settings)).toContain('SLUICE_KAFKA_SASL_PASSWORD')
  kafka.file('password', `${user.password}\n`)
  const client = await openKafka(configOf(settings), log, 'send')
  kafka.file('password', 'another')
  const admin = client.admin()
  const refused = admin.connect().catch(String)
  await until('it was refused', () => warnings.some((text) => text.includes('login by scram-sha-512 failed')))
  kafka.file('password', user.password)
  await refused
  await admin.connect()
  await admin.disconnect()
})

const plain = () => ({
  BROKERS: kafka.at.PLAIN,
  SASL_MECHANISM: 'plain',
  SASL_USERNAME: user.name,
  SASL_PASSWORD: user.password,
})

test('an address that is silent when TLS begins is passed over, and named if there is no other', async () => {
  const silent = await startSilentBroker()
  onTestFinished(() => silent.stop())
  expect(await start({ ...tls(), BROKERS: `${silent.address},${kafka.at.TLS}` })).toBe('let in')
  const problem = await start({ ...tls(), BROKERS: `${silent.address},127.0.0.1:1` })
  expect(problem).toContain(
    `${silent.address}: it accepts connections, and does not agree on TLS (within 2 s)`,
  )
  expect(problem).toContain('127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1')
})

test('an address that is silent when the client logs in is passed over, and named if there is no other', async () => {
  const silent = await startSilentBroker({ upstream: kafka.at.PLAIN })
  onTestFinished(() => silent.stop())
  expect(await start({ ...plain(), BROKERS: `${silent.address},${kafka.at.PLAIN}` })).toBe('let in')
  expect(await start({ ...plain(), BROKERS: silent.address })).toContain(
    `${silent.address}: it does not answer the login (within 2 s)`,
  )
})

test('PLAIN without TLS works, and is warned of', async () => {
  const settings = plain()
  expect(await start(settings)).toBe('let in')
  expect(loginWarnings(configOf(settings).kafka).join()).toContain('in the clear')
  expect(loginWarnings(configOf(scram()).kafka)).toEqual([])
})

test('a token of the token endpoint lets in, and is asked for once', async () => {
  const settings = oauth()
  const before = kafka.tokens.requests.length
  expect(await start(settings)).toBe('let in')
  const asked = kafka.tokens.requests.slice(before)
  expect(asked).toEqual([
    {
      authorization: `Basic ${Buffer.from('sluice:secret').toString('base64')}`,
      form: { grant_type: 'client_credentials', scope: settings.OAUTH_SCOPE },
    },
  ])
})

test('a secret that the token endpoint refuses is said, and not shown', async () => {
  const said = await start({ ...oauth(), OAUTH_CLIENT_SECRET: 'wrong-secret' })
  expect(said).toMatch(
    /^StartError: .*answered 401 invalid_client: look at .*SLUICE_KAFKA_OAUTH_CLIENT_SECRET/,
  )
  expect(said).not.toContain('wrong-secret')
})

test('a token endpoint that is away, or is none, is said', async () => {
  expect(await start({ ...oauth(), OAUTH_TOKEN_URL: 'http://127.0.0.1:1/token' })).toMatch(
    /^StartError: .*gave no token: .*ECONNREFUSED/,
  )
  kafka.tokens.refusal = { status: 200, body: { hello: 'world' } }
  expect(await start(oauth())).toContain('SLUICE_KAFKA_OAUTH_TOKEN_URL')
})

test('a token that the broker refuses is said, with what it holds against it', async () => {
  kafka.tokens.isForging = true
  expect(await start(oauth())).toMatch(
    /^StartError: .*login by oauthbearer failed.*invalid_token.*kafka\.oauth/,
  )
})

test('a token endpoint with a certificate of a private authority is trusted by kafka.caFile', async () => {
  const server = await startTokenServer(kafka.authority.issue({ names: ['127.0.0.1'] }))
  const settings = { ...oauth(), OAUTH_TOKEN_URL: `${server.origin}/token` }
  try {
    expect(await start(settings)).toContain('SLUICE_KAFKA_CA_FILE')
    // The broker refuses the token, because it knows another key. So the token has reached the broker.
    expect(await start({ ...settings, OAUTH_SCOPE: 'other', CA_FILE: ca() })).toContain('invalid_token')
  } finally {
    await server.stop()
  }
})

test('AWS credentials sign a token, which a broker that is none of AWS refuses; without credentials that is said', async () => {
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  const settings = { BROKERS: kafka.at.OAUTH, SASL_MECHANISM: 'aws-iam', AWS_REGION: 'eu-central-1' }
  expect(await start(settings)).toMatch(/^StartError: .*no AWS credentials to sign a token with/)
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE')
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret')
  expect(await start(settings)).toMatch(
    /^StartError: .*login by oauthbearer failed.*invalid_token.*kafka\.awsRegion/,
  )
  vi.unstubAllEnvs()
})

test('a connection outlives its token: a new one is asked for before the end, and no connection is closed', async () => {
  kafka.tokens.lifeSeconds = 12
  const before = kafka.tokens.requests.length
  const admin = (await openKafka(configOf(oauth()), log, 'send')).admin()
  let closed = 0
  admin.on('admin.disconnect', () => closed++)
  await admin.connect()
  const startedMs = performance.now()
  await until(
    'the first token has ended',
    async () => {
      await admin.listTopics()
      return performance.now() - startedMs > 12_500
    },
    { everyMs: 100 },
  )
  expect(closed).toBe(0)
  expect(warnings).toEqual([])
  expect(kafka.tokens.requests.length - before).toBeGreaterThanOrEqual(2)
  await admin.disconnect()
})
