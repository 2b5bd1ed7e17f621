import type { buildConnector } from 'undici'
import { isCertificateError } from './failure.ts'

/**
 * From how many certificates that aren't trusted on a hook is left in peace. Each that is trusted makes up
 * for two.
 */
const enough = 10
/** How long, and how often it is tried by one connection from then on. */
const restMs = 1_000

/**
 * Makes a connector, of one hook, remember that the hook's certificate isn't trusted: what it is asked for
 * meanwhile fails with the same error, without a connection. The verdict on such a certificate is final, so
 * no breaker opens, and each message would cost a handshake: 1.7 ms, or 130 with a chain of certificates that
 * is made for it.
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
