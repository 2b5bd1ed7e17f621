import { readFileSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import { StartError } from '../../roles/start/start-error.ts'

/** Asks the admin API. */
export type AdminClient = {
  readonly origin: string
  /**
   * Sends a request, and resolves with the body of its answer. Rejects with a `RefusedError` if the API
   * refuses the request, and with a `NoAnswerError` if it can't be reached or is busy.
   */
  ask(method: 'GET' | 'POST', path: string, body?: object, signal?: AbortSignal): Promise<unknown>
}

/** Thrown when the admin API can't be reached, or can't answer now. The same request may succeed later. */
export class NoAnswerError extends StartError {
  override readonly name = 'NoAnswerError'
}

/** Thrown when the admin API refuses a request. `said`: what it says about it. */
export class RefusedError extends StartError {
  override readonly name = 'RefusedError'
  readonly status: number
  readonly said: string

  constructor(text: string, { status, said }: { readonly status: number; readonly said: string }) {
    super(text)
    this.status = status
    this.said = said
  }
}

/** How long an answer may take, in milliseconds. A test of a destination takes as long as its URLs. */
const answerWithinMs = 60_000

/** Creates a client of the API at `admin.url`. Throws if no token is set. */
export function createAdminClient(config: Config): AdminClient {
  const { url, host, port } = config.admin
  const base = new URL(url ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  const prefix = base.pathname.replace(/\/$/, '')
  const token = tokenOf(config)
  const where = `${base.origin}${prefix}`
  return {
    origin: where,
    async ask(method, path, body, signal) {
      const inTime = AbortSignal.timeout(answerWithinMs)
      const response = await unlessGone(where, () =>
        fetch(`${where}${path}`, {
          method,
          headers: {
            authorization: `Bearer ${token}`,
            ...(body !== undefined && { 'content-type': 'application/json' }),
          },
          redirect: 'error',
          ...(body !== undefined && { body: JSON.stringify(body) }),
          signal: signal === undefined ? inTime : AbortSignal.any([signal, inTime]),
        }),
      )
      const answer = await unlessGone(where, () => response.text())
      const value = jsonOf(answer)
      if (response.ok && value !== undefined) return value
      throw refusalOf(where, response.status, value)
    },
  }
}

function tokenOf({ admin: { token, tokenFile } }: Config): string {
  if (token !== undefined) return token
  if (tokenFile === undefined)
    throw new StartError(
      'This asks the admin API, which needs a token: set admin.token (SLUICE_ADMIN_TOKEN) or admin.tokenFile (SLUICE_ADMIN_TOKEN_FILE), and admin.url (SLUICE_ADMIN_URL) to where the API is. `sluice tokens create` makes a token. In a folder where `sluice up` runs, nothing has to be set.',
    )
  try {
    return readFileSync(tokenFile, 'utf8').trim()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`admin.tokenFile (SLUICE_ADMIN_TOKEN_FILE): ${why}`, { cause })
  }
}

async function unlessGone<T>(where: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
    // Some errors of connections have only a code.
    const code = inner instanceof Error && 'code' in inner ? String(inner.code) : ''
    const why = inner instanceof Error && inner.message !== '' ? inner.message : code
    throw new NoAnswerError(
      `The admin API at ${where} can not be reached (${why}): see admin.url (SLUICE_ADMIN_URL).`,
      { cause },
    )
  }
}

/** Says why the API has refused a request, in its own words. */
function refusalOf(where: string, status: number, value: unknown): StartError {
  const { detail, title }: { detail?: unknown; title?: unknown } = Object(value)
  const said = [detail, title].find((one) => typeof one === 'string') ?? 'the answer is not of the admin API'
  const text = `The admin API at ${where} answered ${status}: ${said}`
  return status === 429 || status >= 500 ? new NoAnswerError(text) : new RefusedError(text, { status, said })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
