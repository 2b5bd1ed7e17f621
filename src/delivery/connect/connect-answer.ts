/**
 * The meaning of a proxy's answer to CONNECT. The status alone doesn't tell whether the proxy or the target
 * failed. Some proxies send headers that tell it.
 *
 * `target`: the proxy works, but it can't reach the target or may not connect to it. `prohibited`: the proxy
 * says that it must not connect to the target's address. `fault`: the proxy itself failed. If `isDown` is
 * true, the proxy fails for every target.
 */
export type ConnectAnswer =
  | { kind: 'tunnel' }
  | { kind: 'target'; code: string }
  | { kind: 'prohibited' }
  | { kind: 'fault'; reason: string; isDown: boolean }

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * Values of `error=` in `Proxy-Status` (RFC 9209, section 2.3) that mean a failure of the target, not of the
 * proxy.
 */
export const targetErrors: ReadonlySet<string> = new Set([
  'connection_read_timeout',
  'connection_refused',
  'connection_terminated',
  'connection_timeout',
  'connection_write_timeout',
  'destination_ip_unroutable',
  'destination_not_found',
  'destination_unavailable',
  'dns_error',
  'dns_timeout',
  'http_request_denied',
])

/**
 * First words of Squid's header `X-Squid-Error` that mean a failure of the target, or a target that the
 * proxy's rules forbid.
 */
export const squidTargetErrors: ReadonlySet<string> = new Set([
  'ERR_ACCESS_DENIED',
  'ERR_CONNECT_FAIL',
  'ERR_DNS_FAIL',
  'ERR_LIFETIME_EXP',
  'ERR_READ_ERROR',
  'ERR_READ_TIMEOUT',
])

/**
 * Judges a proxy's answer, by its headers if they tell who failed, and otherwise by its status. After a 403,
 * 502 or 504, the target is to blame: 403 means that the proxy's rules forbid the target, and 502 and 504
 * mean that the server behind the proxy failed (RFC 9110, section 15.6). After a 407, the proxy fails for
 * every target, because it refused our login. Any other status except a success is a fault of the proxy for
 * this target only.
 */
export function judgeConnect(status: number, headers: Headers): ConnectAnswer {
  if (status >= 200 && status < 300) return { kind: 'tunnel' }
  const proxyError = /;\s*error=([a-z_]{1,40})/.exec(textOf(headers['proxy-status']))?.[1]
  if (proxyError === 'destination_ip_prohibited') return { kind: 'prohibited' }
  if (proxyError !== undefined) return judgeWord(proxyError, targetErrors)
  const squidError = /^(ERR_[A-Z_]{1,40})/.exec(textOf(headers['x-squid-error']))?.[1]
  if (squidError !== undefined && status !== 407) return judgeWord(squidError, squidTargetErrors)
  const code = `CONNECT_${status}`
  // The proxy Smokescreen answers 407 when it refuses a target, so the status isn't looked at.
  if (headers['x-smokescreen-error'] !== undefined) return { kind: 'target', code }
  if (status === 403 || status === 502 || status === 504) return { kind: 'target', code }
  return { kind: 'fault', reason: code, isDown: status === 407 }
}

function judgeWord(word: string, ofTarget: ReadonlySet<string>): ConnectAnswer {
  return ofTarget.has(word) ? { kind: 'target', code: word } : { kind: 'fault', reason: word, isDown: false }
}

function textOf(header: string | string[] | undefined): string {
  return typeof header === 'string' ? header : (header?.[0] ?? '')
}
