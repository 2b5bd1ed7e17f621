import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** What an account says of a person. `claims`: in the ID token. `info`: in the answer about the user. */
export type Account = {
  readonly sub: string
  readonly claims?: Readonly<Record<string, unknown>>
  readonly info?: Readonly<Record<string, unknown>>
}

/** A small OpenID provider: code flow with PKCE, RS256, one confidential client. */
export type OpenIdProvider = {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string }
  /** Who is signed in at the provider. `undefined`: it refuses with `access_denied`. */
  account: Account | undefined
  /** Replaces claims of the next ID tokens, as a provider would that somebody else controls. */
  forged: Readonly<Record<string, unknown>>
  /** Signs with a key that is not in the list of keys. */
  usesOtherKey: boolean
  /** How many codes were exchanged for tokens. */
  readonly exchanged: () => number
  close(): Promise<void>
}

type Granted = { readonly account: Account; readonly query: URLSearchParams }

export async function startOpenIdProvider(): Promise<OpenIdProvider> {
  const [own, other] = [newKeys(), newKeys()]
  const codes = new Map<string, Granted>()
  const tokens = new Map<string, Account>()
  let exchanged = 0

  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the provider has no port')
  const issuer = `http://127.0.0.1:${address.port}`

  const provider: OpenIdProvider = {
    issuer,
    client: { id: 'sluice', secret: 'a secret of: the client' },
    account: undefined,
    forged: {},
    usesOtherKey: false,
    exchanged: () => exchanged,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer)
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(response, configuration(issuer))
      case '/keys':
        return json(response, {
          keys: [{ ...own.publicKey.export({ format: 'jwk' }), kid: 'own', use: 'sig' }],
        })
      case '/authorize':
        return authorize(url.searchParams, response)
      case '/token':
        return exchange(request, response)
      case '/userinfo': {
        const account = tokens.get(request.headers.authorization?.replace('Bearer ', '') ?? '')
        if (account === undefined) return json(response, { error: 'invalid_token' }, 401)
        return json(response, { sub: account.sub, ...account.info })
      }
      default:
        return json(response, { error: 'not_found' }, 404)
    }
  }

  function authorize(query: URLSearchParams, response: ServerResponse): void {
    const back = new URL(query.get('redirect_uri') ?? '')
    back.searchParams.set('state', query.get('state') ?? '')
    const isWhole = query.get('code_challenge_method') === 'S256' && query.get('response_type') === 'code'
    if (query.get('client_id') !== provider.client.id || !isWhole) return json(response, query, 400)
    if (provider.account === undefined) back.searchParams.set('error', 'access_denied')
    else {
      const code = randomUUID()
      codes.set(code, { account: provider.account, query })
      back.searchParams.set('code', code)
    }
    response.writeHead(302, { location: back.href }).end()
  }

  async function exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await textOf(request))
    const granted = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isRight =
      clientOf(request) === `${provider.client.id}:${provider.client.secret}` &&
      granted?.query.get('code_challenge') === challenge &&
      granted.query.get('redirect_uri') === form.get('redirect_uri')
    if (granted === undefined || !isRight) return json(response, { error: 'invalid_grant' }, 400)
    exchanged++
    const { account, query } = granted
    const accessToken = randomUUID()
    tokens.set(accessToken, account)
    const now = Math.floor(Date.now() / 1_000)
    const claims = {
      iss: issuer,
      aud: provider.client.id,
      sub: account.sub,
      iat: now,
      exp: now + 300,
      nonce: query.get('nonce'),
      ...account.claims,
      ...provider.forged,
    }
    const key = provider.usesOtherKey ? other.privateKey : own.privateKey
    json(response, { access_token: accessToken, token_type: 'Bearer', id_token: jwtOf(claims, key) })
  }

  return provider
}

function newKeys() {
  return generateKeyPairSync('rsa', { modulusLength: 2_048 })
}

function partOf(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function configuration(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
  }
}

/** The id and the secret of the client, which are form-encoded in the header (RFC 6749). */
function clientOf({ headers: { authorization = '' } }: IncomingMessage): string {
  const plain = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()
  return plain
    .split(':')
    .map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
    .join(':')
}

function jwtOf(claims: object, key: KeyObject): string {
  const signed = `${partOf({ alg: 'RS256', typ: 'JWT', kid: 'own' })}.${partOf(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
