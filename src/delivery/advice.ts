import { squidTargetErrors, targetErrors } from './connect/connect-answer.ts'
import type { Outcome } from './outcomes/outcome.ts'

/**
 * Returns what can be done about the outcome of a request, for the person who operates Sluice or the
 * endpoint. Returns `undefined` for a success. `timeoutMs`: the deadline of the request, in milliseconds.
 * `timeoutOf`: where it is set.
 */
export function adviceOn(
  outcome: Outcome,
  timeoutMs: number,
  timeoutOf = 'delivery.timeout',
): string | undefined {
  switch (outcome.kind) {
    case 'answer':
      return adviceOnStatus(outcome.status)
    case 'timeout':
      return `No answer came within ${timeoutMs} ms (${timeoutOf}). The endpoint should answer first and work afterwards. If many requests time out, Sluice makes fewer at once. If the request didn't reach the endpoint, a firewall between Sluice and the endpoint may drop packets.`
    case 'connection':
      return adviceOnConnection(outcome.code)
    case 'dns':
      return adviceOnName(outcome.code)
    case 'proxy':
      return 'The proxy failed, so nothing is known about the endpoint. Check delivery.proxy and the proxy.'
    case 'files':
      return 'This process has reached its limit of open files. Raise the limit (ulimit -n).'
    case 'certificate':
      return adviceOnCertificate(outcome.code)
    case 'address':
      return 'Sluice or its proxy sends nothing to this address, because it is not public. If the address is yours, add it to delivery.allowAddresses, and allow it at the proxy if there is one. localhost has two addresses: 127.0.0.1 and ::1.'
    case 'login':
      return 'There was no token to log in with. Check tokenUrl, clientId, clientSecret and scope in the login of the hook, and the token endpoint. If its address is private and yours, add it to delivery.allowAddresses. A worker would let the message wait, and count no try.'
    case 'request':
      return 'Correct the hook in the catalog.'
  }
}

function adviceOnStatus(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 500) return "The endpoint's own log says why it failed."
  if (status < 400) return 'Sluice follows no redirects. Write the final URL into the catalog.'
  return clientErrors[status] ?? 'The endpoint refuses the request. Its answer or its own log says why.'
}

const unauthorized =
  "The endpoint refuses the signature or a header. Compare the endpoint's secret with sharedSecret, and check the headers and the login of the hook."
const notFound = 'The endpoint has nothing at this path. Check the url of the hook.'
const notYet = 'The endpoint refuses the request for the moment. Its answer or its own log says why.'

const clientErrors: Readonly<Record<number, string>> = {
  401: unauthorized,
  // Apache answers 403 if it would ask for a client certificate after a handshake of TLS 1.3.
  403: `${unauthorized} If it refuses every request, look at its list of allowed addresses, and whether it asks for a client certificate after the handshake (Apache says "Post-Handshake Authentication"): Sluice shows one only during the handshake (tls.certificate of the hook).`,
  404: notFound,
  405: 'The endpoint accepts no POST at this path. Check the url of the hook.',
  408: 'The endpoint says that the request came too slowly. Check the network between Sluice and the endpoint.',
  410: notFound,
  413: 'The endpoint accepts only smaller bodies. Raise its limit.',
  423: notYet,
  425: notYet,
  429: 'The endpoint asks for fewer requests. Set rateLimit for the destination, or raise the limit of the endpoint.',
}

/** The codes of connections that this machine's system refuses, or that find no route to the address. */
const localCodes: ReadonlySet<string> = new Set([
  'EACCES',
  'EADDRNOTAVAIL',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPERM',
])

/** The codes of answers that break the rules of HTTP or Sluice's limits. */
const brokenAnswers: ReadonlySet<string> = new Set([
  'HPE_HEADER_OVERFLOW',
  'SLUICE_ANSWER_STATUS',
  'SLUICE_ANSWER_TOO_LONG',
  'UND_ERR_HEADERS_OVERFLOW',
])

/**
 * `code` is the code of an error of Node, OpenSSL, llhttp, undici or Sluice. It can also be a proxy's reason
 * for not reaching the endpoint (`connect-answer.ts`).
 */
function adviceOnConnection(code: string): string {
  if (code === 'ECONNREFUSED')
    return 'Nothing listens at this host and port. Check the url of the hook, and whether the endpoint runs.'
  if (localCodes.has(code))
    return "This machine can't connect to the address of the host. Check its network and its firewall."
  if (brokenAnswers.has(code))
    return 'The answer breaks the rules of HTTP, or its headers or body are too long.'
  if (code.startsWith('HPE_') || code === 'SLUICE_ANSWER_NOT_HTTP')
    return 'The answer is not HTTP/1.1. If the port expects TLS, begin the url with https.'
  if (code.startsWith('ERR_SSL') || code === 'EPROTO')
    return 'The TLS handshake failed. If the port expects no TLS, begin the url with http. Otherwise, there are three likely causes: the endpoint demands a client certificate (set tls.certificate of the hook, or renew it; a server for which it renegotiates is out of reach), does not know the name of the host, or supports only old versions and ciphers of TLS.'
  if (code === 'CONNECT_403')
    return 'The rules of the proxy forbid the connection. Many proxies, such as Squid, allow CONNECT only to port 443: allow the port of the url too (Squid: SSL_ports). The log of the proxy says why.'
  if (/^CONNECT_\d+$/.test(code) || targetErrors.has(code) || squidTargetErrors.has(code))
    return "The proxy can't reach the endpoint, or the rules of the proxy forbid the connection. The log of the proxy says why."
  return "The connection was lost before the endpoint answered. The endpoint's own log may say why. Some servers close it if they don't accept the client certificate (tls.certificate of the hook)."
}

/** `code` is a code of c-ares. */
function adviceOnName(code: string): string {
  switch (code) {
    case 'ENOTFOUND':
    case 'ENODATA':
      return 'The DNS has no address for the host. Check the url of the hook. If the name is private, check delivery.dnsServers. Inside a cluster, write the whole name, such as my-svc.my-namespace.svc.cluster.local: Sluice adds no search domains to short names.'
    case 'ETIMEOUT':
    case 'ECONNREFUSED':
      return "The DNS servers didn't answer. Check delivery.dnsServers and the network of this process."
    default:
      return 'The DNS servers answered with an error instead of an address. Check the DNS records of the host, and delivery.dnsServers.'
  }
}

const privateAuthority =
  "an authority of your own issued the certificate. If the authority is yours, write its certificate as tls.ca of the hook, or set NODE_EXTRA_CA_CERTS to its file when you start Sluice. If the hook has a tls.ca, it isn't this authority's."

/** `code` is a code of OpenSSL or Node, or the message of an error without a special code. */
function adviceOnCertificate(code: string): string {
  switch (code) {
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      return "The certificate is self-signed, and Sluice doesn't trust it. The endpoint needs a certificate of an authority."
    case 'CERT_HAS_EXPIRED':
      return 'The certificate, or another one in its chain, has expired. Renew the expired one.'
    case 'CERT_NOT_YET_VALID':
      return 'The certificate is not valid yet. Check the clocks of this machine and of the endpoint.'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
    case 'HOSTNAME_MISMATCH':
      return "The certificate doesn't cover the host of the url. The endpoint needs a certificate for this host."
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return `Either the endpoint doesn't send the intermediate certificates, or ${privateAuthority}`
    case 'SELF_SIGNED_CERT_IN_CHAIN':
      return `Either something between Sluice and the endpoint replaces the certificate, or ${privateAuthority}`
    default:
      return 'The endpoint needs another certificate.'
  }
}
