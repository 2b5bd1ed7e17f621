import type { IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { http } from '../../http/node-http.ts'
import { readAnswer } from '../../http/read-answer.ts'
import { secretsOf } from '../../secrets/secret-texts.ts'
import { textWithoutSecrets } from '../../secrets/without-secrets.ts'
import { LoginError } from '../../http/login-error.ts'
import { tlsAdvice } from './tls-advice.ts'
import type { Token } from './token-renewal.ts'

export type TokenRequest = {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string | undefined
  readonly audience: string | undefined
  /** The trusted certificates, as PEM. If `undefined`, the certificates that Node trusts are used. */
  readonly ca: readonly string[] | undefined
  /** The time within which the whole answer has to arrive, in milliseconds. */
  readonly timeoutMs: number
}

/** The largest answer that is accepted, in bytes. A token takes a few kilobytes. */
const maxAnswerBytes = 256 * 1024
/** The lifetime of a token, in milliseconds, if neither the answer nor the token names a lifetime. */
const unsaidLifeMs = 5 * 60_000

/**
 * Requests a token with client credentials. Rejects with a LoginError that contains the endpoint's answer,
 * but never the secret. Source: RFC 6749, sections 2.3.1, 4.4 and 5.
 */
export async function requestToken(asked: TokenRequest, now: () => number): Promise<Token> {
  const askedMs = now()
  const { status, text } = await post(asked)
  const answer = objectOf(text)
  if (status !== 200) throw new LoginError(refusalOf(asked, status, answer))
  const { access_token: value, expires_in: lifeSeconds } = answer
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    throw new LoginError(
      `the token endpoint ${asked.url} answered 200 without an access_token: is kafka.oauthTokenUrl (SLUICE_KAFKA_OAUTH_TOKEN_URL) the URL of the token endpoint?`,
    )
  }
  const lifeMs = Number(lifeSeconds) * 1_000
  return { value, endsMs: lifeMs > 0 ? askedMs + lifeMs : (endOf(value) ?? askedMs + unsaidLifeMs) }
}

async function post(asked: TokenRequest): Promise<{ status: number; text: string }> {
  const { url, scope, audience, ca, timeoutMs } = asked
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
  }).toString()
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    const response = await open(new URL(url), form, {
      method: 'POST',
      agent: false,
      headers: {
        accept: 'application/json',
        authorization: authorizationOf(asked),
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(form),
        'user-agent': 'sluice',
      },
      signal: deadline,
      ...(ca !== undefined && { ca: [...ca] }),
    })
    return { status: response.statusCode ?? 0, text: await readAnswer(response, maxAnswerBytes) }
  } catch (cause) {
    throw new LoginError(
      `the token endpoint ${url} gave no token: ${failureOf(cause, deadline, timeoutMs)}`,
      { cause },
    )
  }
}

function authorizationOf({ clientId, clientSecret }: TokenRequest): string {
  const login = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
  return `Basic ${Buffer.from(login).toString('base64')}`
}

function failureOf(error: unknown, deadline: AbortSignal, timeoutMs: number): string {
  if (deadline.aborted) return `no answer within ${timeoutMs} ms`
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const advice = tlsAdvice(code ?? '')
  if (code === undefined) return error.message
  return advice === undefined ? `${error.message} (${code})` : `${advice} (${code})`
}

function refusalOf(asked: TokenRequest, status: number, answer: Readonly<Record<string, unknown>>): string {
  const secrets = [asked.clientSecret, ...secretsOf([authorizationOf(asked)], '')]
  const said = [answer['error'], answer['error_description']]
    .filter((text) => typeof text === 'string')
    .map((text) => textWithoutSecrets(text, secrets).slice(0, 300))
  const what = `the token endpoint ${asked.url} answered ${[status, ...said].join(' ')}`
  if (answer['error'] === 'invalid_scope')
    return `${what}: look at kafka.oauthScope (SLUICE_KAFKA_OAUTH_SCOPE)`
  if (status === 400 || status === 401 || status === 403) {
    return `${what}: look at kafka.oauthClientId and kafka.oauthClientSecret (SLUICE_KAFKA_OAUTH_CLIENT_ID, SLUICE_KAFKA_OAUTH_CLIENT_SECRET or …_FILE)`
  }
  return `${what}: look at kafka.oauthTokenUrl (SLUICE_KAFKA_OAUTH_TOKEN_URL)`
}

function open(url: URL, body: string, options: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : http.request)(url, options, resolve)
    request.once('error', reject)
    request.end(body)
  })
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/**
 * Returns the expiry that a JSON Web Token names, in epoch milliseconds. Returns `undefined` if the token
 * names no expiry, or isn't a JSON Web Token.
 */
function endOf(token: string): number | undefined {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
  const { exp } = objectOf(payload)
  return typeof exp === 'number' ? exp * 1_000 : undefined
}

function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}
