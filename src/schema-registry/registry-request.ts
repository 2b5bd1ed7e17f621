import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { http } from '../http/node-http.ts'
import { readAnswer } from '../http/read-answer.ts'
import { parseRetryAfter } from '../http/retry-after.ts'

export type RegistryAnswer =
  /** `afterMs`: the wait that the registry has asked for, or 0. */
  | { readonly ok: true; readonly status: number; readonly body: unknown; readonly afterMs: number }
  /** No answer came. `why` is the reason, as half a sentence. */
  | { readonly ok: false; readonly why: string }

/**
 * The present login. It may differ from request to request, because passwords and certificates may be
 * renewed.
 */
export type RegistryLogin = {
  /** The value of an `Authorization` header. */
  readonly authorization: string | undefined
  /** The trusted certificates, in PEM. If `undefined`, the certificates that Node trusts are used. */
  readonly ca: readonly string[] | undefined
}

export type RegistryConnection = {
  readonly login: () => RegistryLogin
  /** The time within which the whole answer has to arrive, in milliseconds. */
  readonly timeoutMs: number
}

/** The largest answer that is accepted, in bytes. Most schemas take a few kilobytes. */
const maxAnswerBytes = 8 * 1024 ** 2

/**
 * Sends one request to a registry. Never rejects, and always ends, even if the registry never answers.
 * Redirects aren't followed. Each request has a new connection. Connections aren't kept, because lookups are
 * rare. A kept connection would often be dead, and the registry would seem to be down.
 */
export async function askRegistry(
  url: string,
  { login, timeoutMs }: RegistryConnection,
  signal: AbortSignal,
): Promise<RegistryAnswer> {
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    const { authorization, ca } = login()
    const options = {
      agent: false as const,
      headers: {
        accept: 'application/vnd.schemaregistry.v1+json, application/json',
        'user-agent': 'sluice',
        ...(authorization !== undefined && { authorization }),
      },
      signal: AbortSignal.any([signal, deadline]),
      ...(ca !== undefined && { ca: [...ca] }),
    }
    const response = await open(new URL(url), options)
    const { statusCode: status = 0, headers } = response
    const afterMs = parseRetryAfter(headers['retry-after'], Date.now(), headers.date) ?? 0
    return { ok: true, status, afterMs, body: parse(await readAnswer(response, maxAnswerBytes)) }
  } catch (error) {
    if (deadline.aborted) return { ok: false, why: `it did not answer within ${timeoutMs} ms` }
    return { ok: false, why: describe(error) }
  }
}

function open(url: URL, options: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : http.request)(url, options, resolve)
    request.once('error', reject)
    request.end()
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string'
    ? `${error.message} (${error.code})`
    : error.message
}
