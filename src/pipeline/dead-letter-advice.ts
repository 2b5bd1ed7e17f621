import type { Outcome } from '../delivery/outcomes/outcome.ts'
import { formatWait } from '../retry/duration.ts'
import type { ConditionFailure } from '../routing/route.ts'

/**
 * Describes why a delivery was given up and what the customer can do. Names the number of tries and the last
 * outcome.
 */
export function describeDeath(
  reason: 'failed_for_good' | 'expired' | 'expired_untried',
  /** `lastOutcome` is a text, which is empty if the delivery was never tried. */
  { attempts, lastOutcome }: { readonly attempts: number; readonly lastOutcome: string },
  /**
   * `limitMs` is the time in milliseconds for which a delivery may be tried. If the delivery is given up
   * directly after its last try, `last` is the outcome of this try.
   */
  { limitMs, last }: { readonly limitMs: number; readonly last?: Outcome | undefined },
): string {
  const within = formatWait(limitMs)
  const tries = `${attempts} ${attempts === 1 ? 'try' : 'tries'}, the last: ${lastOutcome === '' ? 'unknown' : lastOutcome}`
  switch (reason) {
    case 'expired':
      return `no URL took it within ${within}: ${tries}. ${adviceOf(last)}`
    case 'expired_untried':
      return `it was never tried within ${within}: its URLs fail, and there was more to be sent to such ones than delivery.maxInFlightSick (SLUICE_DELIVERY_MAX_IN_FLIGHT_SICK) or the destination's maxInFlight lets through. Mend or pause the destination, raise these, or run more workers; then send it again.`
    case 'failed_for_good':
      return `every URL refused it for good: ${tries}. ${adviceOf(last)}`
  }
}

/** Describes that a delivery became a dead letter because it has waited for its turn for too long. */
export function describeAge(waitedMs: number): string {
  return `it has waited for its turn for ${formatWait(Math.round(waitedMs / 3_600_000) * 3_600_000)}, and the topic waiting keeps no record longer: switch the destination on, or let it take more (rateLimit, maxInFlight); then send it again.`
}

/**
 * Describes that a delivery became a dead letter because no token to log in with could be had for so long.
 */
export function describeNoLogin(waitedMs: number, problem: string): string {
  const waited = formatWait(Math.max(1, Math.round(waitedMs / 60_000)) * 60_000)
  return `it has waited for ${waited} for a token to log in with (delivery.loginWait), the last failure: ${problem}. Correct the login in the catalog, or mend the token endpoint; then send it again.`
}

/** Describes that a delivery became a dead letter because somebody has given up what waited. */
export function describeDrop(destinationId: string): string {
  return `somebody has given up what waited for the destination (sluice destinations drop; GET /v1/audit says who): to send it after all: sluice replay dead-letters --destination ${destinationId} --reason dropped`
}

/** Describes that it can't be said whether a destination should get a message. */
export function describeFilterFault({ of, detail }: ConditionFailure): string {
  const [whose, command] =
    of === 'filter'
      ? ['filter.condition', 'sluice filter test']
      : ['condition of a mapping', 'sluice mappings test']
  return `the ${whose} of the destination can't be evaluated for this message (${detail}), so it was neither sent nor left out. Try it with \`${command}\`, and correct it in the catalog; then send it again, if it passes: sluice replay dead-letters --reason filter_failed`
}

/** Describes that a mapping makes nothing of a message. */
export function describeMappingFault(detail: string): string {
  return `the mapping of the destination makes no request of this message: ${detail}. Try it with \`sluice mappings test\`, and correct it in the catalog; then send it again: sluice replay dead-letters --reason mapping_failed`
}

const endpointAdvice = 'Mend the endpoint, which must answer 2xx in time; then send it again.'

function adviceOf(last: Outcome | undefined): string {
  switch (last?.kind) {
    case undefined:
      return endpointAdvice
    case 'answer':
      return adviceOfStatus(last.status)
    case 'timeout':
      return 'Let the endpoint answer 2xx at once and do its work afterwards; then send it again.'
    case 'connection':
      return 'See that the endpoint runs and can be reached from the workers; then send it again.'
    case 'dns':
      return 'Correct the host name in the catalog, or its record in DNS; then send it again.'
    case 'proxy':
      return 'See that the proxy (delivery.proxy) lets this URL through; then send it again.'
    case 'files':
      return 'Let the workers open more files (ulimit -n); then send it again.'
    case 'certificate':
      return 'Give the endpoint a valid certificate of a public authority for its host name: self-signed ones are not supported; then send it again.'
    case 'address':
      return 'Use a public address, or list the range in delivery.allowAddresses; then send it again.'
    case 'login':
      return 'Correct the login of its URL in the catalog, or mend the token endpoint; then send it again.'
    case 'request':
      return "Correct the destination's URL or headers in the catalog; then send it again."
  }
}

function adviceOfStatus(status: number): string {
  if (status >= 300 && status < 400)
    return 'Redirects are not followed: put the URL that it redirects to into the catalog; then send it again.'
  if (status === 401 || status === 403)
    return "The endpoint takes no request with these credentials: check the destination's headers and sharedSecret; then send it again."
  if (status === 404 || status === 410)
    return 'The endpoint has nothing at this URL: correct it in the catalog; then send it again.'
  if (status === 413) return 'The endpoint takes no body of this size: raise its limit; then send it again.'
  if (status >= 400 && status < 500 && status !== 408 && status !== 423 && status !== 425 && status !== 429)
    return 'The endpoint refuses this message: its log says why.'
  return endpointAdvice
}
