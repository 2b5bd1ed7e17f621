import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import { type Authority, createAuthority, type Identity } from './certificates.ts'
import { type SingleBroker, startSingleBroker } from './single-broker.ts'
import { startTokenServer, type TokenServer } from './token-server.ts'

/**
 * The protocols of the listeners beside the plain one. The comments say what each listener requires of its
 * clients.
 */
const ways = {
  /** TLS. The broker's certificate comes from a private authority. */
  TLS: 'SSL',
  /** TLS, and a certificate of the client. */
  MTLS: 'SSL',
  /** TLS, and a login with SCRAM-SHA-256 or SCRAM-SHA-512. */
  SCRAM: 'SASL_SSL',
  /** A login with a password, without TLS. */
  PLAIN: 'SASL_PLAINTEXT',
  /** A login with a token of the token server, without TLS. */
  OAUTH: 'SASL_PLAINTEXT',
} as const

type Way = keyof typeof ways

/** A Kafka broker with the kinds of TLS and login that real clusters have. Each kind has its own port. */
export type GuardedKafka = SingleBroker & {
  at: Record<Way, string>
  authority: Authority
  tokens: TokenServer
  /** Writes a file into the folder of this Kafka, and returns the file's path. */
  file(name: string, text: string): string
}

/** The only user. This user can log in with SCRAM and with PLAIN. */
export const user = { name: 'alice', password: 'alice-secret' }

export async function startGuardedKafka(): Promise<GuardedKafka> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-guarded-'))
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }
  const authority = createAuthority('private authority')
  const keystore = file('broker.pem', pemOf(authority.issue({ names: ['127.0.0.1', 'kafka.internal'] })))
  const truststore = file('authority.pem', authority.cert)
  const tokens = await startTokenServer()
  const [atTls = 0, atMtls = 0, atScram = 0, atPlain = 0, atOauth = 0] = await freePorts(5)
  const ports: Record<Way, number> = {
    TLS: atTls,
    MTLS: atMtls,
    SCRAM: atScram,
    PLAIN: atPlain,
    OAUTH: atOauth,
  }
  const at = (way: Way): string => `127.0.0.1:${ports[way]}`
  const listeners = Object.entries(ways).map(([name, protocol], index) => ({
    name,
    protocol,
    port: Object.values(ports)[index] ?? 0,
  }))
  const broker = await startSingleBroker({
    extra: {
      listeners,
      properties: guards(keystore, truststore, tokens.origin),
      javaFlags: [`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${tokens.origin}/jwks`],
      formatArgs: ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
        '--add-scram',
        `${mechanism}=[name=${user.name},password=${user.password}]`,
      ]),
    },
  })
  return {
    ...broker,
    at: { TLS: at('TLS'), MTLS: at('MTLS'), SCRAM: at('SCRAM'), PLAIN: at('PLAIN'), OAUTH: at('OAUTH') },
    authority,
    tokens,
    file,
    async stop() {
      await broker.stop()
      await tokens.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function pemOf({ key, cert }: Identity): string {
  return `${key}\n${cert}`
}

function guards(keystore: string, truststore: string, tokens: string): Record<string, string> {
  const modules = 'org.apache.kafka.common.security'
  const plain = `${modules}.plain.PlainLoginModule required user_${user.name}="${user.password}";`
  const oauth = 'listener.name.oauth'
  return {
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': keystore,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': truststore,
    'listener.name.mtls.ssl.client.auth': 'required',
    'listener.name.scram.sasl.enabled.mechanisms': 'SCRAM-SHA-256,SCRAM-SHA-512',
    'listener.name.scram.scram-sha-256.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
    'listener.name.scram.scram-sha-512.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
    'listener.name.plain.sasl.enabled.mechanisms': 'PLAIN',
    'listener.name.plain.plain.sasl.jaas.config': plain,
    [`${oauth}.sasl.enabled.mechanisms`]: 'OAUTHBEARER',
    [`${oauth}.oauthbearer.connections.max.reauth.ms`]: '60000',
    [`${oauth}.oauthbearer.sasl.jaas.config`]: `${modules}.oauthbearer.OAuthBearerLoginModule required;`,
    [`${oauth}.oauthbearer.sasl.server.callback.handler.class`]: `${modules}.oauthbearer.OAuthBearerValidatorCallbackHandler`,
    [`${oauth}.sasl.oauthbearer.jwks.endpoint.url`]: `${tokens}/jwks`,
    [`${oauth}.sasl.oauthbearer.expected.audience`]: 'kafka',
  }
}
