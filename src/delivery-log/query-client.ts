import {
  type Asking,
  BadCursorError,
  type LogFilter,
  type LogQuery,
  QueryBusyError,
  QueryFailedError,
  QueryTooLongError,
} from './log-query.ts'

const timeoutMs = 60_000
/** The latest time that a `Date` can hold. It replaces infinity, because JSON has no infinity. */
const endOfTimeMs = 8_640_000_000_000_000

/**
 * Creates a client for queries of the delivery log, which another process answers. `url` is the address of
 * that process, such as `http://127.0.0.1:9410`.
 */
export function createQueryClient(url: string, token: string | undefined): LogQuery {
  async function ask<T>(name: string, body: object = {}, { signal }: Asking = {}): Promise<T> {
    const address = new URL(`v1/log/${name}`, url.endsWith('/') ? url : `${url}/`)
    const response = await post(address, body, token, signal)
    const answer: unknown = await response.json().catch(() => undefined)
    // An answer 200 isn't always a result. It may be the login page of a proxy, or may have broken off in the
    // middle.
    if (response.ok && (typeof answer !== 'object' || answer === null))
      throw new QueryFailedError(
        `The index at ${url} does not answer: what came is no JSON, or not all of it.`,
      )
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server of this version answers a T
    if (response.ok) return answer as T
    const error = textIn(answer, 'error') ?? `it answers ${response.status}`
    if (typeof answer === 'object' && answer !== null && 'isBadCursor' in answer)
      throw new BadCursorError(error)
    if (typeof answer === 'object' && answer !== null && 'isTooLong' in answer)
      throw new QueryTooLongError(error)
    if (typeof answer === 'object' && answer !== null && 'isBusy' in answer)
      throw new QueryBusyError(`The index at ${url} is busy: ${error}.`)
    throw new QueryFailedError(`The index at ${url} does not answer: ${error}.`)
  }
  return {
    find: (messageId, asking) => ask('find', { messageId }, asking),
    search: (filter, page, asking) => ask('search', { filter: finite(filter), page }, asking),
    counts: (filter, asking) => ask('counts', { filter: finite(filter) }, asking),
    percentiles: (filter, asking) => ask('percentiles', { filter: finite(filter) }, asking),
    groups: (filter, grouping, asking) => ask('groups', { filter: finite(filter), grouping }, asking),
    status: () => ask('status'),
    close: () => Promise.resolve(),
  }
}

async function post(
  url: URL,
  body: object,
  token: string | undefined,
  gone: AbortSignal | undefined,
): Promise<Response> {
  const inTime = AbortSignal.timeout(timeoutMs)
  try {
    return await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: gone === undefined ? inTime : AbortSignal.any([gone, inTime]),
    })
  } catch (cause) {
    const why = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
    const reason = why instanceof Error ? why.message : String(why)
    throw new QueryFailedError(`The index at ${url.origin} can not be queried: ${reason}.`, { cause })
  }
}

function finite(filter: LogFilter): LogFilter {
  return { ...filter, toMs: Math.min(filter.toMs, endOfTimeMs) }
}

function textIn(value: unknown, name: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const found: unknown = Reflect.get(value, name)
  return typeof found === 'string' ? found : undefined
}
