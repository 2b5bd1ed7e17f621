import type { buildConnector } from 'undici'
import { isCertificateError } from './failure.ts'

/**
 * If this number of connections to a hook had an untrusted certificate, no connection to the hook is opened
 * for a while. Each connection with a trusted certificate lowers the count by two.
 */
const enough = 10
/**
 * Time for which no connections to a hook with an untrusted certificate are opened. After this time, a single
 * connection is tried. If its certificate isn't trusted either, no connections are opened for the same time
 * again.
 */
const restMs = 1_000

/**
 * Makes the connector of one hook remember that the hook's certificate isn't trusted. As long as the
 * connector remembers this, further connections fail with the same error without being opened. A request that
 * fails because of a self-signed certificate isn't retried and isn't a failure for the hook's breaker. So the
 * breaker stays closed, and each message would cost a handshake if the connector did not remember: 1.7 ms, or
 * 130 ms with a malicious chain of certificates.
 */
export function rememberingDistrust(connect: buildConnector.connector): buildConnector.connector {
  let suspicion = 0
  let last: Error | undefined
  let restUntilMs = 0
  let isProbing = false

  function learn(error: Error | null): void {
    if (error === null) suspicion = Math.max(0, suspicion - 2)
    else if (isCertificateError(error)) {
      suspicion = Math.min(enough, suspicion + 1)
      last = error
      restUntilMs = performance.now() + restMs
    }
  }

  return (options, callback) => {
    const isProbe = suspicion === enough
    if (isProbe && last !== undefined) {
      if (isProbing || performance.now() < restUntilMs) {
        callback(last, null)
        return
      }
      isProbing = true
    }
    connect(options, (...result) => {
      if (isProbe) isProbing = false
      learn(result[0])
      callback(...result)
    })
  }
}
