import type { IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import {
  clientAuthorization,
  readTokenAnswer,
  type Token,
  type TokenAnswer,
  tokenForm,
} from '../../http/client-credentials.ts'
import { http } from '../../http/node-http.ts'
import { readAnswer } from '../../http/read-answer.ts'
import { parseRetryAfter } from '../../http/retry-after.ts'
import { secretsOf } from '../../secrets/secret-texts.ts'
import { textWithoutSecrets } from '../../secrets/without-secrets.ts'
import { LoginError } from '../../http/login-error.ts'
import { tlsAdvice } from './tls-advice.ts'

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

/** Reports that a token endpoint has refused a token. `afterMs`: the wait that it asked for, or 0. */
export class TokenRefusedError extends LoginError {
  readonly afterMs: number

  constructor(message: string, afterMs: number) {
    super(message)
    this.afterMs = afterMs
  }
}

/** The largest answer that is accepted, in bytes. A token takes a few kilobytes. */
const maxAnswerBytes = 256 * 1024

/**
 * Requests a token with client credentials. Rejects with a LoginError that contains the endpoint's answer,
 * but never the secret; with a TokenRefusedError if the endpoint has answered with another status than 200.
 * Source: RFC 6749, sections 2.3.1, 4.4 and 5.
 */
export async function requestToken(asked: TokenRequest, now: () => number): Promise<Token> {
  const askedMs = now()
  const { status, text, afterMs } = await post(asked)
  const answer = readTokenAnswer(status, text, askedMs)
  if (answer.ok) return answer.token
  if (status !== 200) throw new TokenRefusedError(refusalOf(asked, status, answer), afterMs)
  throw new LoginError(
    `the token endpoint ${asked.url} answered 200 without an access_token: is kafka.oauthTokenUrl (SLUICE_KAFKA_OAUTH_TOKEN_URL) the URL of the token endpoint?`,
  )
}

async function post(asked: TokenRequest): Promise<{ status: number; text: string; afterMs: number }> {
  const { url, ca, timeoutMs } = asked
  const form = tokenForm(asked)
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    const response = await open(new URL(url), form, {
      method: 'POST',
      agent: false,
      headers: {
        accept: 'application/json',
        authorization: clientAuthorization(asked),
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(form),
        'user-agent': 'sluice',
      },
      signal: deadline,
      ...(ca !== undefined && { ca: [...ca] }),
    })
    const { statusCode: status = 0, headers } = response
    const afterMs = parseRetryAfter(headers['retry-after'], Date.now(), headers.date) ?? 0
    return { status, text: await readAnswer(response, maxAnswerBytes), afterMs }
  } catch (cause) {
    throw new LoginError(
      `the token endpoint ${url} gave no token: ${failureOf(cause, deadline, timeoutMs)}`,
      { cause },
    )
  }
}

function failureOf(error: unknown, deadline: AbortSignal, timeoutMs: number): string {
  if (deadline.aborted) return `no answer within ${timeoutMs} ms`
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const advice = tlsAdvice(code ?? '')
  if (code === undefined) return error.message
  return advice === undefined ? `${error.message} (${code})` : `${advice} (${code})`
}

function refusalOf(asked: TokenRequest, status: number, answer: Extract<TokenAnswer, { ok: false }>): string {
  const secrets = [asked.clientSecret, ...secretsOf([clientAuthorization(asked) ?? ''], '')]
  const said = answer.said.map((text) => textWithoutSecrets(text, secrets).slice(0, 300))
  const what = `the token endpoint ${asked.url} answered ${[status, ...said].join(' ')}`
  if (answer.error === 'invalid_scope') return `${what}: look at kafka.oauthScope (SLUICE_KAFKA_OAUTH_SCOPE)`
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
