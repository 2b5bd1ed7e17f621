/** What is wrong with a request, and what to do (RFC 9457). `status` is 0 if no answer came. */
export type Problem = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
}

/** The answer to a call. `version` is that of the object that was read or changed, for `If-Match`. */
export type Answer<T> =
  | { readonly ok: true; readonly value: T; readonly version: string | undefined }
  | { readonly ok: false; readonly problem: Problem }

export type Call = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Parameters that are `undefined` or empty are left out. */
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
}

/** The time that a call may take. The server counts a replay for up to 20 s, and waits up to 5 s for a place. */
const limitMs = 40_000

/**
 * Calls the admin API with the cookie of the session. All pages are one folder deep (`…/console/now`), so the
 * API is at `../v1`, behind any prefix.
 */
export async function call<T>(path: string, given: Call = {}): Promise<Answer<T>> {
  const { method = 'GET', body, signal } = given
  const within = AbortSignal.timeout(limitMs)
  try {
    const response = await fetch(`..${path}${queryText(given.query)}`, {
      method,
      headers: headersOf(given),
      credentials: 'same-origin',
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal === undefined ? within : AbortSignal.any([signal, within]),
    })
    return await answerOf<T>(response)
  } catch (error) {
    return { ok: false, problem: noAnswer(error) }
  }
}

/** Tells whether a call was given up by the page, because nobody needs its answer any more. */
export function isGivenUp(problem: Problem): boolean {
  return problem.type === 'given-up'
}

async function answerOf<T>(response: Response): Promise<Answer<T>> {
  const text = await response.text()
  const json = parsed(text)
  if (!response.ok) return { ok: false, problem: problemOf(response, json) }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the API keeps to its document
  const value = json as T
  return { ok: true, value, version: response.headers.get('etag') ?? undefined }
}

function problemOf({ status, statusText }: Response, json: unknown): Problem {
  const found = typeof json === 'object' && json !== null ? json : {}
  const textAt = (key: string, otherwise: string): string => {
    const value: unknown = Reflect.get(found, key)
    return typeof value === 'string' ? value : otherwise
  }
  return {
    type: textAt('type', 'unknown'),
    title: textAt('title', statusText === '' ? `Status ${status}` : statusText),
    status,
    detail: textAt(
      'detail',
      'The answer is not from Sluice. Look whether a proxy in front of it answers instead.',
    ),
  }
}

function noAnswer(error: unknown): Problem {
  const name = error instanceof Error ? error.name : ''
  if (name === 'AbortError') return { type: 'given-up', title: 'Given up', status: 0, detail: '' }
  if (name === 'TimeoutError') {
    const detail = `No answer came within ${limitMs / 1000} s. Try again, or look whether sluice admin is busy.`
    return { type: 'too-slow', title: 'No answer in time', status: 0, detail }
  }
  const detail = 'Look whether sluice admin runs, and whether this machine can reach it.'
  return { type: 'unreachable', title: 'Sluice does not answer', status: 0, detail }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function headersOf({ body, headers = {} }: Call): Record<string, string> {
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  )
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
  return { Accept: 'application/json', ...type, ...Object.fromEntries(given) }
}

function queryText(query: Call['query'] = {}): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') params.set(name, String(value))
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
