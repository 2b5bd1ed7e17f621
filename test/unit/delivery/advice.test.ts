import { expect, test } from 'vitest'
import { adviceOn } from '../../../src/delivery/advice.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'

const status = (code: number): Outcome => ({ kind: 'answer', status: code })

test.each([200, 204, 299])('a success (%i) needs no advice', (code) => {
  expect(adviceOn(status(code), 5_000)).toBeUndefined()
})

test.each<[Outcome, string]>([
  [status(302), 'Write the final URL into the catalog.'],
  [status(400), 'Its answer or its own log says why.'],
  [status(401), 'Compare the endpoint’s secret with sharedSecret'],
  [status(403), 'Post-Handshake Authentication'],
  [status(404), 'Check the url of the hook.'],
  [status(405), 'accepts no POST'],
  [status(423), 'for the moment'],
  [status(429), 'Set rateLimit for the destination'],
  [status(503), 'own log says why it failed'],
  [{ kind: 'timeout' }, 'within 5000 ms (delivery.timeout)'],
  [{ kind: 'connection', code: 'ECONNREFUSED' }, 'Nothing listens at this host and port.'],
  [{ kind: 'connection', code: 'EHOSTUNREACH' }, 'can’t connect to the address'],
  [{ kind: 'connection', code: 'EPERM' }, 'its firewall'],
  [{ kind: 'connection', code: 'CONNECT_403' }, 'allow CONNECT only to port 443'],
  [{ kind: 'connection', code: 'CONNECT_502' }, 'The log of the proxy says why.'],
  [{ kind: 'connection', code: 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE' }, 'for which it renegotiates'],
  [{ kind: 'dns', code: 'ENOTFOUND' }, 'my-svc.my-namespace.svc.cluster.local'],
  [{ kind: 'connection', code: 'connection_refused' }, 'The log of the proxy says why.'],
  [{ kind: 'connection', code: 'ERR_ACCESS_DENIED' }, 'The log of the proxy says why.'],
  [{ kind: 'connection', code: 'SLUICE_ANSWER_TOO_LONG' }, 'breaks the rules of HTTP'],
  [{ kind: 'connection', code: 'HPE_HEADER_OVERFLOW' }, 'breaks the rules of HTTP'],
  [{ kind: 'connection', code: 'SLUICE_ANSWER_NOT_HTTP' }, 'is not HTTP/1.1'],
  [{ kind: 'connection', code: 'ERR_TLS_HANDSHAKE_TIMEOUT' }, 'was lost before the endpoint answered'],
  [{ kind: 'connection', code: 'UND_ERR_SOCKET' }, 'was lost before the endpoint answered'],
  [{ kind: 'connection', code: 'HPE_INVALID_CONSTANT' }, 'begin the url with https'],
  [{ kind: 'connection', code: 'ERR_SSL_WRONG_VERSION_NUMBER' }, 'begin the url with http.'],
  [{ kind: 'connection', code: 'ECONNRESET' }, 'was lost before the endpoint answered'],
  [{ kind: 'dns', code: 'ENOTFOUND' }, 'has no address for the host'],
  [{ kind: 'dns', code: 'ENODATA' }, 'has no address for the host'],
  [{ kind: 'dns', code: 'ETIMEOUT' }, 'didn’t answer'],
  [{ kind: 'dns', code: 'ESERVFAIL' }, 'answered with an error'],
  [{ kind: 'proxy', code: 'ECONNREFUSED', isDown: true }, 'delivery.proxy'],
  [{ kind: 'files', code: 'EMFILE' }, 'ulimit -n'],
  [{ kind: 'login', detail: 'https://login.example: status 401' }, 'Check tokenUrl'],
  [{ kind: 'certificate', code: 'CERT_HAS_EXPIRED' }, 'Renew the expired one.'],
  [{ kind: 'certificate', code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, 'doesn’t cover the host'],
  [{ kind: 'certificate', code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }, 'intermediate certificates'],
  [{ kind: 'certificate', code: 'SELF_SIGNED_CERT_IN_CHAIN' }, 'NODE_EXTRA_CA_CERTS'],
  [{ kind: 'certificate', code: 'ee key too small' }, 'needs another certificate'],
  [{ kind: 'address', address: '10.0.0.1' }, 'delivery.allowAddresses'],
  [{ kind: 'request', detail: 'invalid path' }, 'Correct the hook in the catalog.'],
])('%o has the advice that helps', (outcome, advice) => {
  expect(adviceOn(outcome, 5_000)?.replaceAll("'", '’')).toContain(advice)
})
