import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { KafkaSettings } from './kafka-settings.ts'

/** Who this client is to the brokers' authorizer, as far as it can know: brokers may map names to others. */
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

/** As Java writes a subject, which is the other way round. */
function subjectOf(certFile: string): string {
  const { subject } = new X509Certificate(readFileSync(certFile))
  return subject.split('\n').toReversed().join(',')
}
