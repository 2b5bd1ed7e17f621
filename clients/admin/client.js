/**
 * The client of the admin API, for browsers and Node. It needs no other file at run time. `client.d.ts` has its
 * types.
 */
export function createAdminClient({ baseUrl, token, fetch = globalThis.fetch }) {
  const base = baseUrl.replace(/\/+$/, '')

  async function call(method, path, { path: params = {}, query, body, signal, ...conditions } = {}) {
    const headers = { accept: 'application/json' }
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    for (const [option, header] of conditionHeaders)
      if (conditions[option] !== undefined) headers[header] = conditions[option]
    const response = await fetch(`${base}${filled(path, params)}${queryText(query)}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    })
    const text = await response.text()
    if (!response.ok) throw new AdminProblem(problemOf(response, text), response.headers.get('retry-after'))
    return { data: text === '' ? undefined : JSON.parse(text), etag: response.headers.get('etag') }
  }

  async function* pages(method, path, options = {}) {
    let next = options
    for (;;) {
      const { data } = await call(method, path, next)
      yield data
      if (data.cursor === null) return
      const { cursor, from } = data
      // A page of a POST needs the beginning of the time range that the first answer has chosen.
      next =
        method === 'POST'
          ? { ...options, body: { ...(from !== undefined && { from }), ...options.body, cursor } }
          : { ...options, query: { ...options.query, cursor } }
    }
  }

  return {
    get: (path, options) => call('GET', path, options),
    post: (path, options) => call('POST', path, options),
    put: (path, options) => call('PUT', path, options),
    patch: (path, options) => call('PATCH', path, options),
    delete: (path, options) => call('DELETE', path, options),
    getPages: (path, options) => pages('GET', path, options),
    postPages: (path, options) => pages('POST', path, options),
  }
}

/** The server has refused a call. The message is the `detail`, which tells people what to do. */
export class AdminProblem extends Error {
  constructor({ type, title, status, detail }, retryAfter) {
    super(detail)
    this.name = 'AdminProblem'
    this.type = type
    this.title = title
    this.status = status
    this.detail = detail
    this.retryAfterSeconds = /^\d+$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined
  }
}

const conditionHeaders = [
  ['ifMatch', 'if-match'],
  ['ifNoneMatch', 'if-none-match'],
  ['idempotencyKey', 'idempotency-key'],
]

function filled(path, params) {
  return path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const value = String(params[name] ?? '')
    // A URL loses such a part, and would then name something else.
    if (['', '.', '..'].includes(value)) throw new TypeError(`path.${name} can not be "${value}"`)
    return encodeURIComponent(value)
  })
}

function queryText(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** A proxy may answer in the place of the server, with something else than a problem detail. */
function problemOf({ status, statusText, headers }, text) {
  if (headers.get('content-type')?.startsWith('application/problem+json')) return JSON.parse(text)
  const detail = `The answer is no problem detail, so it is not from sluice admin: HTTP ${status} ${text.slice(0, 200)}`
  return { type: 'about:blank', title: statusText, status, detail }
}
