import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type KafkaSettings, principalOf } from '../../../../src/kafka/login/kafka-settings.ts'
import { createAuthority } from '../../../support/certificates.ts'

const plain: KafkaSettings = {
  brokers: [],
  clientId: 'sluice',
  ssl: false,
  saslMechanism: 'none',
  saslUsername: undefined,
  saslPassword: undefined,
}

test.each([
  ['User:ANONYMOUS', {}],
  ['User:alice', { saslMechanism: 'scram-sha-512', saslUsername: 'alice' }],
  ['the principal of the tokens for etl', { saslMechanism: 'oauthbearer', oauthClientId: 'etl' }],
  ['the AWS identity of this process', { saslMechanism: 'aws-iam' }],
] as const)('a client is %s with %j', (principal, settings) => {
  expect(principalOf({ ...plain, ...settings })).toBe(principal)
})

test('a client with a certificate is its subject, as Java writes it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-principal-'))
  const certFile = join(folder, 'client.pem')
  writeFileSync(certFile, createAuthority('authority').issue({ names: ['sluice'] }).cert)
  expect(principalOf({ ...plain, ssl: true, certFile })).toBe('User:CN=sluice')
  rmSync(folder, { recursive: true })
})
