import type { buildConnector } from 'undici'
import { isCertificateError } from './failure.ts'

/**
 * Number of untrusted certificates after which a hook is left alone for a while. Each trusted certificate
 * cancels two untrusted ones.
 */
const enough = 10
/**
 * Time for which the hook is left alone. After this time, a single connection is tried. If that connection
 * fails too, the hook is left alone for the same time again.
 */
const restMs = 1_000

/**
 * Makes the connector of one hook remember that the hook's certificate isn't trusted. While it remembers,
 * further connections fail with the same error without being opened. An untrusted certificate isn't retried
 * and doesn't count for the breaker, so no breaker opens. Without this memory each message would cost a
 * handshake: 1.7 ms, or 130 ms with a malicious chain of certificates.
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
