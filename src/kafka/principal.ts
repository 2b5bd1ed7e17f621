import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { KafkaSettings } from './kafka-settings.ts'

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
