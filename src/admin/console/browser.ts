import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6 } from 'node:net'
import { plainAddress, proxiesIn } from '../../http/client-address.ts'

/** How browsers reach the admin API. */
export type BrowserOptions = {
  /** The URL by which browsers reach the root of the API. `undefined`: by the address that it listens on. */
  readonly publicUrl: string | undefined
  /** Ranges of addresses of proxies, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed. */
  readonly trustedProxies: readonly string[]
}

/** What is looked at of a request. */
export type Approach = {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** The other end of the connection, and the port at this end. */
  readonly socket: { readonly remoteAddress?: string | undefined; readonly localPort?: number | undefined }
}

/** Who sent a request to the admin API, as far as a browser tells. */
export type Caller = {
  /** The address of the client. Of IPv6, only the network, because one client has all of its addresses. */
  readonly address: string
  /** The secret in the session cookie. */
  readonly secret: string | undefined
  /** Returns the headers that make the browser keep a session, or forget it (`undefined`). */
  readonly keep: (secret: string | undefined) => Readonly<Record<string, string>>
}

/** `own`: a page of ours. `foreign`: a page of another site. `unknown`: the request doesn't say. */
export type Site = 'own' | 'foreign' | 'unknown'

/** How long a sign-in at the provider may take, in seconds. */
const flowSeconds = 600
/** It has a secret, and the page to show afterwards. */
const mostFlowCharacters = 1_000

/** What requests of browsers say about where they come from, and the cookie that they carry. */
export class Browsers {
  readonly #publicUrl: URL | undefined
  readonly #isTrusted: ReturnType<typeof proxiesIn>

  constructor({ publicUrl, trustedProxies }: BrowserOptions) {
    this.#publicUrl = publicUrl === undefined ? undefined : new URL(publicUrl)
    this.#isTrusted = proxiesIn(trustedProxies)
  }

  /** The path before all paths of the API, without a slash at its end. Empty: there is none. */
  get prefix(): string {
    return this.#publicUrl?.pathname.replace(/\/+$/, '') ?? ''
  }

  /**
   * Says which site a request comes from. Browsers set `Origin` and `Sec-Fetch-Site`, and no page can change
   * them. An own `Origin` is that of the public URL, or of the host that the request names: a page of another
   * host can't send a cookie of this one.
   */
  siteOf({ headers }: Approach): Site {
    const { origin, host = '' } = headers
    const fetched = headers['sec-fetch-site']
    if (fetched !== undefined && fetched !== 'same-origin' && fetched !== 'none') return 'foreign'
    if (origin !== undefined)
      return origin === this.#publicUrl?.origin || [`http://${host}`, `https://${host}`].includes(origin)
        ? 'own'
        : 'foreign'
    return fetched === 'same-origin' ? 'own' : 'unknown'
  }

  callerOf(request: Approach): Caller {
    const name = this.#cookieName(request)
    const attributes = [
      `Path=${this.prefix === '' ? '/' : this.prefix}`,
      'HttpOnly',
      'SameSite=Strict',
      ...(this.#isSecure(request) ? ['Secure'] : []),
    ].join('; ')
    return {
      address: this.#addressOf(request),
      secret: cookieOf(request.headers.cookie, name),
      keep: (secret) => ({
        'set-cookie': `${name}=${secret ?? ''}; ${attributes}${secret === undefined ? '; Max-Age=0' : ''}`,
      }),
    }
  }

  /** Returns what a browser keeps while it signs in at the provider. */
  flowOf(request: Approach): string | undefined {
    return cookieOf(request.headers.cookie, this.#flowName(request), mostFlowCharacters)
  }

  /**
   * Returns the cookie of a browser that goes to the provider, or has come back (`undefined`). It comes back
   * from another site, so `SameSite=Strict` would keep the cookie from being sent.
   */
  keepFlow(request: Approach, kept: string | undefined): string {
    const parts = [
      `${this.#flowName(request)}=${kept ?? ''}`,
      `Path=${this.prefix === '' ? '/' : this.prefix}`,
      `Max-Age=${kept === undefined ? 0 : flowSeconds}`,
      'HttpOnly',
      'SameSite=Lax',
      ...(this.#isSecure(request) ? ['Secure'] : []),
    ]
    return parts.join('; ')
  }

  #flowName(request: Approach): string {
    return `${this.#cookieName(request)}-sign-in`
  }

  /**
   * `__Host-` and `__Secure-` keep other hosts and pages without TLS from setting the cookie. `__Host-`
   * allows no path. Without TLS, the name has the port, because all ports of a host share their cookies.
   */
  #cookieName(request: Approach): string {
    if (!this.#isSecure(request)) return `sluice-${request.socket.localPort ?? 0}`
    return this.prefix === '' ? '__Host-sluice' : '__Secure-sluice'
  }

  #isSecure({ headers, socket }: Approach): boolean {
    if (this.#publicUrl !== undefined) return this.#publicUrl.protocol === 'https:'
    const isBelieved = this.#isTrusted !== false && this.#isTrusted(socket.remoteAddress ?? '')
    return isBelieved && String(headers['x-forwarded-proto']).split(',').at(-1)?.trim() === 'https'
  }

  #addressOf({ headers, socket }: Approach): string {
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
    let address = socket.remoteAddress ?? ''
    while (forwarded.length > 0 && this.#isTrusted !== false && this.#isTrusted(address)) {
      const next = plainAddress(forwarded.pop() ?? '')
      if (next === undefined) break
      address = next
    }
    const plain = plainAddress(address) ?? ''
    return isIPv6(plain) ? plain.split(':').slice(0, 4).join(':') : plain
  }
}

/** Returns the value of a cookie. A name that comes twice was set by somebody else too, so it has none. */
function cookieOf(header: string | undefined, name: string, most = 200): string | undefined {
  const values = (header ?? '').split(';').flatMap((pair) => {
    const [key = '', value = ''] = pair.trim().split('=', 2)
    return key === name ? [value] : []
  })
  const [only] = values
  return values.length === 1 && only !== undefined && only.length <= most && /^[\x21-\x7e]+$/.test(only)
    ? only
    : undefined
}
