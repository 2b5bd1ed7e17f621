import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The settings for connecting and logging in to the cluster. */
export type KafkaSettings = {
  brokers: readonly string[]
  clientId: string
  ssl: boolean
  /** The path of a PEM file with further authorities that may sign the brokers' certificates. */
  caFile?: string | undefined
  /** The path of a PEM file with the certificate of this client. */
  certFile?: string | undefined
  /** The path of a PEM file with the private key of this client. */
  keyFile?: string | undefined
  keyPassword?: string | undefined
  keyPasswordFile?: string | undefined
  /** The name in the brokers' certificates, if it isn't the brokers' host name. */
  serverName?: string | undefined
  saslMechanism: 'none' | 'plain' | 'scram-sha-256' | 'scram-sha-512' | 'oauthbearer' | 'aws-iam'
  saslUsername: string | undefined
  saslPassword: string | undefined
  saslPasswordFile?: string | undefined
  oauthTokenUrl?: string | undefined
  oauthClientId?: string | undefined
  oauthClientSecret?: string | undefined
  oauthClientSecretFile?: string | undefined
  oauthScope?: string | undefined
  oauthAudience?: string | undefined
  /** The SASL extensions that are sent with the token, each in the form `name=value`. */
  oauthExtensions?: readonly string[]
  awsRegion?: string | undefined
}

/**
 * Returns the principal that the brokers' authorizer probably sees. Brokers may be configured to map names to
 * other names.
 */
export function principalOf(settings: KafkaSettings): string {
  switch (settings.saslMechanism) {
    case 'plain':
    case 'scram-sha-256':
    case 'scram-sha-512':
      return `User:${settings.saslUsername ?? ''}`
    case 'oauthbearer':
      return `the principal of the tokens for ${settings.oauthClientId ?? ''}`
    case 'aws-iam':
      return 'the AWS identity of this process'
    case 'none':
      return settings.certFile === undefined ? 'User:ANONYMOUS' : `User:${subjectOf(settings.certFile)}`
  }
}

/** Returns a certificate's subject as Java writes it, which is in reverse order. */
function subjectOf(certFile: string): string {
  const { subject } = new X509Certificate(readFileSync(certFile))
  return subject.split('\n').toReversed().join(',')
}
