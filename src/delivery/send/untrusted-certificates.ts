import type { Connector } from '../connect/host-addresses.ts'
import { isCertificateError } from './failure.ts'

/**
 * If this number of connections to a hook had an untrusted certificate, no connection to the hook is opened
 * for a while. Each connection with a trusted certificate lowers the count by two.
 */
const enough = 10
/**
 * Time in milliseconds for which no connections to a hook with an untrusted certificate are opened. After
 * this time, a single connection is tried, and further requests wait for its result. If the certificate still
 * isn't trusted, no connections are opened for the same time again.
 */
const restMs = 1_000

/**
 * Makes the connector of one hook remember that the hook's certificate isn't trusted. While the connector
 * remembers this, further connections fail at once with the same error, and no socket is opened.
 *
 * A request that fails because of a self-signed certificate isn't retried, and isn't a failure for the hook's
 * breaker. So the breaker stays closed, and without this function, each message would cost a handshake. A
 * handshake takes 1.7 ms, or 130 ms with a malicious chain of certificates.
 */
export function rememberingDistrust(connect: Connector): Connector {
  let suspicion = 0
  let last: Error | undefined
  let restUntilMs = 0
  /** The requests that wait for the result of the single connection; `undefined` if none is being tried. */
  let waiting: ((error: Error | null) => void)[] | undefined

  function learn(error: Error | null): void {
    if (error === null) suspicion = Math.max(0, suspicion - 2)
    else if (isCertificateError(error)) {
      suspicion = Math.min(enough, suspicion + 1)
      last = error
      restUntilMs = performance.now() + restMs
    }
  }

  const open: Connector = (options, callback) => {
    connect(options, (...result) => {
      learn(result[0])
      callback(...result)
    })
  }

  return (options, callback) => {
    const known = suspicion === enough ? last : undefined
    if (known === undefined) open(options, callback)
    else if (waiting !== undefined) {
      waiting.push((error) => {
        if (error === null) open(options, callback)
        else callback(error, null)
      })
    } else if (performance.now() < restUntilMs) callback(known, null)
    else {
      waiting = []
      open(options, (...result) => {
        const all = waiting ?? []
        waiting = undefined
        callback(...result)
        for (const goOn of all) goOn(result[0])
      })
    }
  }
}
