import { createSign, generateKeyPairSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Identity } from './certificates.ts'

/** An authorization server for tests. Keeps the requests that it got. A test can set how it answers. */
export type TokenServer = {
  origin: string
  /** The requests for a token, the newest last. */
  requests: { authorization: string; form: Record<string, string> }[]
  /** The lifetime of the tokens that are issued from now on, in seconds. */
  lifeSeconds: number
  /** If set, the server answers with this refusal instead of a token. */
  refusal: { status: number; body: object } | undefined
  /** If true, the next tokens are signed with a key that isn't published. */
  isForging: boolean
  stop(): Promise<void>
}

/**
 * Starts an authorization server. It knows one client, `sluice` with the secret `secret`. It publishes the
 * key with which its tokens are signed.
 */
export async function startTokenServer(identity?: Identity): Promise<TokenServer> {
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const forged = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwks = {
    keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }],
  }
  const expected = `Basic ${Buffer.from('sluice:secret').toString('base64')}`

  function tokenOf(): string {
    const seconds = Math.floor(Date.now() / 1_000)
    const claims = {
      sub: 'sluice',
      iat: seconds,
      exp: seconds + state.lifeSeconds,
      aud: 'kafka',
      scope: 'kafka',
    }
    const text = [{ alg: 'RS256', kid: 'one', typ: 'at+jwt' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const { privateKey } = state.isForging ? forged : keys
    return `${text}.${createSign('RSA-SHA256').update(text).sign(privateKey).toString('base64url')}`
  }

  function answerTo(authorization: string, form: Record<string, string>): { status: number; body: object } {
    state.requests.push({ authorization, form })
    if (state.refusal !== undefined) return state.refusal
    if (authorization !== expected) return { status: 401, body: { error: 'invalid_client' } }
    if (form['grant_type'] !== 'client_credentials') return { status: 400, body: { error: 'invalid_grant' } }
    return {
      status: 200,
      body: { access_token: tokenOf(), token_type: 'Bearer', expires_in: state.lifeSeconds },
    }
  }

  const server: Server = identity === undefined ? createServer() : createTlsServer(identity)
  server.on('request', (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
      const { status, body } =
        request.url === '/jwks'
          ? { status: 200, body: jwks }
          : answerTo(request.headers.authorization ?? '', form)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const state: TokenServer = {
    origin: `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests: [],
    lifeSeconds: 300,
    refusal: undefined,
    isForging: false,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return state
}
