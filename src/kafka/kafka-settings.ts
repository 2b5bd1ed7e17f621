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
