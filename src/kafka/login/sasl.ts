import kafkajs, { type AuthenticationProviderArgs, type Authenticator, type Mechanism } from 'kafkajs'
import { textWithoutSecrets } from '../../secrets/without-secrets.ts'
import type { KafkaSettings } from './kafka-settings.ts'
import { kafkajsFile } from '../wire/kafkajs-file.ts'
import { LoginError, type ReportedTroubles } from '../../http/login-error.ts'
import { authorityReader, passwordReader } from '../../http/reread-file.ts'
import { requestToken } from './token-endpoint.ts'
import { Tokens } from './token-renewal.ts'
import type { Token } from '../../http/client-credentials.ts'
import { messageOf } from '../wire/errors.ts'

type Provider = (args: AuthenticationProviderArgs) => Authenticator
type Keep = (message: string) => void

const tokenTimeoutMs = 5_000

/**
 * Returns how each connection logs in. Returns `undefined` if no login is configured. Passwords and secrets
 * are read each time that they are needed. After a failed login, the client connects and logs in again,
 * because the failure may be temporary: the broker may already have a new password while the file still has
 * the old one. Throws a LoginError at once if a file that the settings name can't be used.
 */
export function createLogin(settings: KafkaSettings, troubles: ReportedTroubles): Mechanism | undefined {
  const { saslMechanism } = settings
  const onKept: Keep = (message) => troubles.take(message)
  switch (saslMechanism) {
    case 'none':
      return undefined
    case 'plain':
    case 'scram-sha-256':
    case 'scram-sha-512':
      return login(saslMechanism, passwordProvider(settings, onKept), passwordAdvice, troubles)
    case 'oauthbearer':
      return login(
        'oauthbearer',
        bearerProvider(oauthTokens(settings, onKept), settings),
        tokenAdvice,
        troubles,
      )
    case 'aws-iam':
      return login('oauthbearer', bearerProvider(awsTokens(settings, onKept), settings), awsAdvice, troubles)
  }
}

const passwordAdvice =
  'look at kafka.saslUsername and kafka.saslPassword (SLUICE_KAFKA_SASL_USERNAME, SLUICE_KAFKA_SASL_PASSWORD or …_FILE), and at kafka.saslMechanism'
const tokenAdvice =
  'look at kafka.oauthScope, kafka.oauthAudience and kafka.oauthExtensions (SLUICE_KAFKA_OAUTH_SCOPE, …_AUDIENCE, …_EXTENSIONS), and at what the broker expects of a token'
const awsAdvice =
  'look at kafka.awsRegion (SLUICE_KAFKA_AWS_REGION), and at what the policy of this identity allows: kafka-cluster:Connect'

function login(mechanism: string, provider: Provider, advice: string, troubles: ReportedTroubles): Mechanism {
  return {
    mechanism,
    authenticationProvider: (args) => ({
      async authenticate() {
        try {
          await provider(args).authenticate()
        } catch (cause) {
          const broker = `${args.host}:${args.port}`
          let problem = `${broker}: the login by ${mechanism} failed (${messageOf(cause)}): ${advice}`
          if (cause instanceof LoginError) problem = cause.message
          if (cause instanceof kafkajs.KafkaJSRequestTimeoutError)
            problem = `${broker}: it does not answer the login by ${mechanism}`
          troubles.take(problem)
          throw new kafkajs.KafkaJSConnectionError(problem, { broker })
        }
      },
    }),
  }
}

function passwordProvider(
  { saslMechanism, saslUsername: username = '', saslPassword, saslPasswordFile }: KafkaSettings,
  onKept: Keep,
): Provider {
  const setting = 'kafka.saslPasswordFile (SLUICE_KAFKA_SASL_PASSWORD_FILE)'
  const password = passwordReader(saslPassword, saslPasswordFile, setting, onKept)
  const file = saslMechanism.replace('scram-sha-', 'scram')
  type BuiltIn = (sasl: { username: string; password: string }) => Provider
  const builtIn = kafkajsFile<BuiltIn>(`kafkajs/src/broker/saslAuthenticator/${file}.js`)
  return (args) => builtIn({ username, password: password() ?? '' })(args)
}

/**
 * Logs in by sending a token. A broker that refuses the token answers with the reason and without an error
 * code. kafkajs would treat this answer as a successful login, and would fail later when the broker closes
 * the connection. Source: RFC 7628, section 3.
 */
function bearerProvider(tokens: Tokens, { oauthExtensions = [] }: KafkaSettings): Provider {
  return ({ saslAuthenticate }) => ({
    async authenticate() {
      const extensions = oauthExtensions.map((extension) => `\u0001${extension}`).join('')
      const token = await tokens.current()
      const message = Buffer.from(`n,,\u0001auth=Bearer ${token}${extensions}\u0001\u0001`)
      const refusal = await saslAuthenticate<string>({
        request: { encode: () => sized(message) },
        // The first four bytes are the length.
        response: { decode: (bytes) => bytes.subarray(4), parse: String },
      })
      if (refusal !== undefined && refusal !== '')
        throw new Error(`the broker answered ${textWithoutSecrets(refusal, [token]).slice(0, 300)}`)
    },
  })
}

function sized(message: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(message.length)
  return Buffer.concat([length, message])
}

/**
 * The tokens of this process, by login. Clients with the same login share their tokens. `ask` and `onKept`
 * come from the newest client. The first client of a process only checks the brokers, and logs nothing.
 */
const shared = new Map<string, SharedTokens>()

type SharedTokens = { readonly tokens: Tokens; ask: () => Promise<Token>; onKept: Keep }

function sharedTokens(key: readonly unknown[], ask: () => Promise<Token>, onKept: Keep): Tokens {
  const name = JSON.stringify(key)
  const existing = shared.get(name)
  if (existing !== undefined) {
    Object.assign(existing, { ask, onKept })
    return existing.tokens
  }
  const tokens = new Tokens({
    ask: () => made.ask(),
    onKept: (reason) => made.onKept(`${reason}; the previous token stays in use until it expires`),
    now: Date.now,
  })
  const made: SharedTokens = { tokens, ask, onKept }
  shared.set(name, made)
  return tokens
}

function oauthTokens(settings: KafkaSettings, onKept: Keep): Tokens {
  const { oauthTokenUrl: url = '', oauthClientId: clientId = '' } = settings
  const {
    oauthClientSecret,
    oauthClientSecretFile,
    oauthScope: scope,
    oauthAudience: audience,
    caFile,
  } = settings
  const setting = 'kafka.oauthClientSecretFile (SLUICE_KAFKA_OAUTH_CLIENT_SECRET_FILE)'
  const secret = passwordReader(oauthClientSecret, oauthClientSecretFile, setting, onKept)
  const ca = authorityReader(caFile, onKept, 'kafka.caFile (SLUICE_KAFKA_CA_FILE)')
  const ask = (): Promise<Token> =>
    requestToken(
      { url, clientId, clientSecret: secret() ?? '', scope, audience, ca: ca(), timeoutMs: tokenTimeoutMs },
      Date.now,
    )
  return sharedTokens([url, clientId, scope, audience, oauthClientSecret, oauthClientSecretFile], ask, onKept)
}

/**
 * Returns tokens that this process signs, with the credentials that the AWS SDK finds. The SDK is large, so
 * it is loaded only here.
 */
function awsTokens({ awsRegion: region = '' }: KafkaSettings, onKept: Keep): Tokens {
  const ask = async (): Promise<Token> => {
    try {
      const { generateAuthToken } = await import('aws-msk-iam-sasl-signer-js')
      const { token, expiryTime } = await generateAuthToken({ region })
      return { value: token, endsMs: expiryTime }
    } catch (cause) {
      throw new LoginError(
        `no AWS credentials to sign a token with (${messageOf(cause)}): give this process a role (of its pod or machine), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
        { cause },
      )
    }
  }
  return sharedTokens(['aws', region], ask, onKept)
}
