import { describe, expect, it, vi } from 'vitest'
import { catalogVariables, isGiven, readConfig, type ConfigInput } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'

function read(input: ConfigInput): Config {
  const result = readConfig({ env: {}, ...input })
  if (!result.ok) throw new Error(result.message)
  return result.config
}

function refusal(input: ConfigInput): string {
  const result = readConfig({ env: {}, ...input })
  return result.ok ? 'no fault' : result.message
}

describe('readConfig', () => {
  it('takes a flag before a variable before the default', () => {
    const env = { SLUICE_HTTP_PORT: '1000', SLUICE_HTTP_HOST: '127.0.0.1' }
    const result = readConfig({ env, flags: { httpPort: '2000' } })
    expect(result).toMatchObject({ ok: true, config: { http: { host: '127.0.0.1', port: 2000 } } })
    expect(
      result.ok && [...result.sources].filter(([name]) => name.startsWith('http.') || name === 'log.level'),
    ).toEqual([
      ['http.host', 'env SLUICE_HTTP_HOST'],
      ['http.port', 'flag --http-port'],
      ['log.level', 'default'],
    ])
  })

  it('takes what stands in for the defaults, unless a variable or a flag is given', () => {
    const standIns = {
      origin: '.sluice/running.json',
      values: { SLUICE_HTTP_PORT: '1', SLUICE_HTTP_HOST: '127.0.0.9', SLUICE_LOG_LEVEL: 'warn' },
    }
    const env = { SLUICE_HTTP_HOST: '127.0.0.1' }
    const result = readConfig({ env, flags: { logLevel: 'error' }, standIns })
    expect(result).toMatchObject({
      ok: true,
      config: { http: { host: '127.0.0.1', port: 1 }, log: { level: 'error' } },
    })
    expect(result.ok && [result.sources.get('http.port'), result.sources.get('http.host')]).toEqual([
      '.sluice/running.json',
      'env SLUICE_HTTP_HOST',
    ])
    expect(isGiven('http.host', { env })).toBe(true)
    expect(isGiven('http.port', { env })).toBe(false)
    expect(isGiven('log.level', { env, flags: { logLevel: 'error' } })).toBe(true)
  })

  it('takes KAFKA_BROKERS when its own variable is not set', () => {
    expect(read({ env: { KAFKA_BROKERS: 'a:1' } }).kafka.brokers).toEqual(['a:1'])
    expect(read({ env: { KAFKA_BROKERS: 'a:1', SLUICE_KAFKA_BROKERS: 'b:2, c:3' } }).kafka.brokers).toEqual([
      'b:2',
      'c:3',
    ])
  })

  it('counts an empty variable as unset', () => {
    expect(read({ env: { SLUICE_HTTP_PORT: '', SLUICE_KAFKA_GROUP_ID: '' } }).http.port).toBe('auto')
  })

  it('takes an empty topic prefix from a flag', () => {
    expect(read({ flags: { kafkaTopicPrefix: '' } }).kafka.topicPrefix).toBe('')
  })

  it.each([
    ['sluice.', 'sluice'],
    ['eu.', 'eu.workers'],
    ['', 'workers'],
  ])('names the group after the topic prefix %j where none is set: %s', (prefix, group) => {
    expect(read({ flags: { kafkaTopicPrefix: prefix } }).kafka.groupId).toBe(group)
  })

  it('leaves a group that is set as it is, whatever the topic prefix is', () => {
    const env = { SLUICE_KAFKA_GROUP_ID: 'sluice', SLUICE_KAFKA_TOPIC_PREFIX: 'eu.' }
    expect(read({ env }).kafka.groupId).toBe('sluice')
  })

  it('takes a boolean flag without a value as true', () => {
    expect(read({ flags: { topicsDevelopment: true } }).topics.development).toBe(true)
  })

  it('leaves options alone that are none of its flags', () => {
    expect(read({ flags: { json: true } }).log.level).toBe('info')
  })

  it('takes no secret from a flag', () => {
    expect(read({ flags: { kafkaSaslPassword: 'x' } }).kafka.saslPassword).toBeUndefined()
  })

  it.each([
    [
      'SLUICE_KAFKA_BROKERS',
      '::1:9092',
      'expected host:port, such as kafka-1:9092 or [::1]:9092, with commas between them',
    ],
    [
      'SLUICE_KAFKA_BROKERS',
      '[::g]:9092',
      'expected host:port, such as kafka-1:9092 or [::1]:9092, with commas between them',
    ],
    [
      'SLUICE_KAFKA_BROKERS',
      'localhost',
      'expected host:port, such as kafka-1:9092 or [::1]:9092, with commas between them',
    ],
    [
      'SLUICE_KAFKA_BROKERS',
      'a:1,b:70000',
      'expected host:port, such as kafka-1:9092 or [::1]:9092, with commas between them',
    ],
    [
      'SLUICE_KAFKA_BROKERS',
      'a:1,,b:2',
      'expected host:port, such as kafka-1:9092 or [::1]:9092, with commas between them',
    ],
    ['SLUICE_KAFKA_TOPIC_PREFIX', 'a b', 'expected up to 100 of A-Z a-z 0-9 . _ -'],
    ['SLUICE_KAFKA_SESSION_TIMEOUT', '5s', 'expected a duration from 6s to 5m'],
    ['SLUICE_KAFKA_SESSION_TIMEOUT', '30', 'expected a duration from 6s to 5m'],
    ['SLUICE_KAFKA_SSL', 'yes', 'expected true or false'],
    [
      'SLUICE_KAFKA_SASL_MECHANISM',
      'gssapi',
      'expected none, plain, scram-sha-256, scram-sha-512, oauthbearer or aws-iam',
    ],
    ['SLUICE_TOPICS_PARTITIONS', '0', 'expected a whole number from 1 to 1000'],
    ['SLUICE_TOPICS_PARTITIONS', '1.5', 'expected a whole number from 1 to 1000'],
    ['SLUICE_TOPICS_PARTITIONS', '1e2', 'expected a whole number from 1 to 1000'],
    ['SLUICE_WORKER_PROCESSES', '0', 'expected auto or a whole number from 1 to 256'],
    ['SLUICE_WORKER_PROCESSES', 'all', 'expected auto or a whole number from 1 to 256'],
    ['SLUICE_RETRY_LADDER', ',', 'expected 1 to 20 durations from 100ms to 24h, with commas between them'],
    [
      'SLUICE_RETRY_LADDER',
      '1m,1d',
      'expected 1 to 20 durations from 100ms to 24h, with commas between them',
    ],
    ['SLUICE_RETRY_LADDER', '1s,'.repeat(20) + '1s', 'expected 1 to 20 durations from 100ms to 24h'],
    ['SLUICE_DELIVERY_BUFFER_BYTES', '64MB', 'expected a size from 1MiB to 16GiB (B, KiB, MiB or GiB)'],
    ['SLUICE_DELIVERY_BUFFER_BYTES', '1KiB', 'expected a size from 1MiB to 16GiB (B, KiB, MiB or GiB)'],
    [
      'SLUICE_DELIVERY_ALLOW_ADDRESSES',
      '10.0.0.0/33',
      'expected address ranges such as 10.1.0.0/16 or fd00::/8',
    ],
    [
      'SLUICE_DELIVERY_ALLOW_ADDRESSES',
      '10.0.0/8',
      'expected address ranges such as 10.1.0.0/16 or fd00::/8',
    ],
    [
      'SLUICE_DELIVERY_ALLOW_ADDRESSES',
      'fd00::/129',
      'expected address ranges such as 10.1.0.0/16 or fd00::/8',
    ],
    ['SLUICE_DELIVERY_DNS_SERVERS', 'dns.example', 'expected addresses such as 10.0.0.2, 10.0.0.2:5353 or'],
    ['SLUICE_DELIVERY_DNS_SERVERS', '10.0.0.2:0', 'expected addresses such as 10.0.0.2, 10.0.0.2:5353 or'],
    ['SLUICE_DELIVERY_DNS_SERVERS', '[10.0.0.2]:53', 'expected addresses such as 10.0.0.2, 10.0.0.2:5353 or'],
    ['SLUICE_LOG_LEVEL', 'INFO', 'expected trace, debug, info, warn, error, fatal or silent'],
  ])('refuses %s=%s and says what it expects', (variable, value, expected) => {
    const message = refusal({ env: { [variable]: value } })
    expect(message).toContain(`(${variable}): env ${variable} gives ${JSON.stringify(value)}; ${expected}`)
    expect(message.split('\n')).toHaveLength(2)
  })

  it.each([
    ['SLUICE_RETRY_LADDER', '500ms, 5s', { retry: { ladderMs: [500, 5_000] } }],
    ['SLUICE_RETRY_THEN', '4h', { retry: { thenMs: 14_400_000 } }],
    ['SLUICE_DELIVERY_BUFFER_BYTES', '1GiB', { delivery: { bufferBytes: 1_073_741_824 } }],
    ['SLUICE_DELIVERY_BUFFER_BYTES', '1048577B', { delivery: { bufferBytes: 1_048_577 } }],
    [
      'SLUICE_DELIVERY_ALLOW_ADDRESSES',
      '10.0.0.0/8, 127.0.0.1, ::1, fd00::/08',
      { delivery: { allowAddresses: ['10.0.0.0/8', '127.0.0.1/32', '::1/128', 'fd00::/8'] } },
    ],
    [
      'SLUICE_DELIVERY_DNS_SERVERS',
      '10.0.0.2, 10.0.0.3:5353, fd00::2, [fd00::3]:53',
      { delivery: { dnsServers: ['10.0.0.2', '10.0.0.3:5353', 'fd00::2', '[fd00::3]:53'] } },
    ],
    ['SLUICE_DELIVERY_PROXY', 'http://proxy:3128', { delivery: { proxy: 'http://proxy:3128' } }],
    [
      'SLUICE_DELIVERY_PROXY',
      'http://a:b%40c@[fd00::2]/',
      { delivery: { proxy: 'http://a:b%40c@[fd00::2]/' } },
    ],
    ['SLUICE_HTTP_PORT', '0', { http: { port: 0 } }],
    ['SLUICE_LOG_LEVEL', 'silent', { log: { level: 'silent' } }],
  ])('reads %s=%s', (variable, value, expected) => {
    expect(read({ env: { [variable]: value } })).toMatchObject(expected)
  })

  it('names all faults at once, each with its key, its variable and where the value is from', () => {
    const env = { SLUICE_HTTP_PORT: 'x', SLUICE_LOG_LEVL: 'info', SLUICE_TOPICS_REPLICATION: '1' }
    expect(refusal({ env, flags: { kafkaSsl: 'maybe' } }).split('\n')).toEqual([
      'The configuration has 4 faults:',
      '  kafka.ssl (SLUICE_KAFKA_SSL): flag --kafka-ssl gives "maybe"; expected true or false',
      '  http.port (SLUICE_HTTP_PORT): env SLUICE_HTTP_PORT gives "x"; expected auto or a whole number from 0 to 65535',
      '  topics.minInsync (SLUICE_TOPICS_MIN_INSYNC): is 2; expected at most topics.replication, which is 1',
      '  SLUICE_LOG_LEVL: is not a variable of Sluice; did you mean SLUICE_LOG_LEVEL?',
    ])
  })

  it('shows no secret, wherever it was put', () => {
    const secret = 'hunter2-hunter2'
    const env = { SLUICE_KAFKA_SASL_PASSWORD: secret, SLUICE_KAFKA_SASL_PASSWRD: secret }
    const message = refusal({ env })
    expect(message).toContain('did you mean SLUICE_KAFKA_SASL_PASSWORD?')
    expect(message).toContain('kafka.saslPassword (SLUICE_KAFKA_SASL_PASSWORD): is set while')
    expect(message).not.toContain(secret)
  })

  it.each([
    'proxy:3128',
    'https://proxy.example',
    'socks5://proxy.example',
    'http://user:hunter2@proxy.example/path',
    'http://user:hunter2@proxy.example?a',
    'http://user:hunter2%@proxy.example',
    'http://',
  ])('refuses %s for a proxy, and does not show it', (proxy) => {
    const message = refusal({ env: { SLUICE_DELIVERY_PROXY: proxy } })
    expect(message).toContain(
      'gives a value that is not shown; expected http://host:port or http://user:password@',
    )
    expect(message).not.toContain('hunter2')
  })

  it.each([
    'registry:8081',
    'ftp://registry',
    'http://user:hunter2@registry',
    'http://hunter2@registry',
    'http://registry?a',
    'http://',
  ])('refuses %s for a schema registry, and shows no login', (url) => {
    const message = refusal({ env: { SLUICE_REGISTRY_URL: url } })
    expect(message).toContain('registry.url (SLUICE_REGISTRY_URL): env SLUICE_REGISTRY_URL gives')
    expect(message).not.toContain('hunter2')
  })

  it.each([
    ['SLUICE_REGISTRY_URL', 'https://key:pl/an+ted@registry:8081'],
    ['SLUICE_REGISTRY_URL', `https://key:planted${'x'.repeat(100)}@registry:8081`],
    ['SLUICE_REGISTRY_URL', 'https://key:with@planted@registry:8081'],
    ['SLUICE_CLICKHOUSE_URL', 'https://clickhouse:8443/?user=default&password=planted'],
    ['SLUICE_KAFKA_BROKERS', 'user:planted@broker:9092,user:planted@broker:9093'],
  ])('shows no login that is written into %s: %s', (variable, text) => {
    const message = refusal({ env: { [variable]: text } })
    expect(message).toContain(variable)
    expect(message).not.toMatch(/planted|an\+ted/)
  })

  it('wants the login of a schema registry whole, and a registry', () => {
    const url = 'https://registry:8081/apis/ccompat/v7'
    const login = { SLUICE_REGISTRY_USERNAME: 'u', SLUICE_REGISTRY_PASSWORD: 'p' }
    expect(read({ env: { SLUICE_REGISTRY_URL: url, ...login } }).registry).toMatchObject({
      url,
      username: 'u',
    })
    expect(refusal({ env: login })).toContain('registry.url is not')
    expect(refusal({ env: { SLUICE_REGISTRY_URL: url, SLUICE_REGISTRY_USERNAME: 'u' } })).toContain(
      'together with registry.username',
    )
    expect(refusal({ env: { SLUICE_REGISTRY_URL: url, SLUICE_REGISTRY_PASSWORD: 'p' } })).toContain(
      'together with registry.username',
    )
  })

  it('wants a user and a password with a login mechanism', () => {
    const message = refusal({ env: { SLUICE_KAFKA_SASL_MECHANISM: 'plain' } })
    expect(message).toContain('kafka.saslUsername (SLUICE_KAFKA_SASL_USERNAME): is not set')
    expect(message).toContain('kafka.saslPassword (SLUICE_KAFKA_SASL_PASSWORD): is not set')
  })

  it('lets one broker do for development, without more', () => {
    expect(
      read({ env: { SLUICE_TOPICS_DEVELOPMENT: 'true', SLUICE_TOPICS_REPLICATION: '1' } }).topics,
    ).toMatchObject({ development: true, replication: 1 })
  })

  it('has no guess for a variable that is like no other', () => {
    expect(refusal({ env: { SLUICE_COLOUR_OF_THE_SKY: 'blue' } })).toContain(
      'SLUICE_COLOUR_OF_THE_SKY: is not a variable of Sluice; remove it',
    )
  })

  it('overlooks the variables that Kubernetes makes for a Service called sluice', () => {
    const env = {
      SLUICE_SERVICE_HOST: '10.0.0.1',
      SLUICE_SERVICE_PORT: '9400',
      SLUICE_SERVICE_PORT_METRICS: '9400',
      SLUICE_PORT: 'tcp://10.0.0.1:9400',
      SLUICE_PORT_9400_TCP: 'tcp://10.0.0.1:9400',
      SLUICE_PORT_9400_TCP_ADDR: '10.0.0.1',
      SLUICE_ADMIN_PORT_80_TCP_PROTO: 'tcp',
    }
    expect(readConfig({ env }).ok).toBe(true)
  })

  it('overlooks the one that Kubernetes makes for a Service called sluice-gateway, and takes a real port', () => {
    expect(read({ env: { SLUICE_GATEWAY_PORT: 'tcp://10.0.0.1:80' } }).gateway.port).toBe(8080)
    expect(read({ env: { SLUICE_GATEWAY_PORT: '81' } }).gateway.port).toBe(81)
  })

  it('does not overlook a misspelled port', () => {
    expect(refusal({ env: { SLUICE_HTP_PORT: '9400' } })).toContain('did you mean SLUICE_HTTP_PORT?')
  })

  it('reads the variables of the process when it is given none', () => {
    vi.stubEnv('SLUICE_LOG_LEVEL', 'loud')
    expect(readConfig()).toMatchObject({ ok: false, message: expect.stringContaining('gives "loud"') })
    vi.unstubAllEnvs()
  })
})

describe('catalogVariables', () => {
  it('hands out what begins with CATALOG_, and nothing else', () => {
    const env = { CATALOG_CRM: 'a', SLUICE_KAFKA_SASL_PASSWORD: 'b', HOME: 'c', CATALOG_GONE: undefined }
    expect(catalogVariables(env)).toEqual({ CATALOG_CRM: 'a' })
  })
})
