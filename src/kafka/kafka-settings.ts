/** How to reach the cluster. */
export type KafkaSettings = {
  brokers: readonly string[]
  clientId: string
  ssl: boolean
  /** Paths of PEM files. */
  caFile?: string | undefined
  certFile?: string | undefined
  keyFile?: string | undefined
  keyPassword?: string | undefined
  keyPasswordFile?: string | undefined
  /** That the certificates are for, in place of the host. */
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
  /** `name=value` */
  oauthExtensions?: readonly string[]
  awsRegion?: string | undefined
}
