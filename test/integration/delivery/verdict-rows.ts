import { createAuthority, dayMs, type Identity, selfSigned } from '../../support/certificates.ts'
import type { RawScript, Script } from '../../support/receiver.ts'

type RowBasics = {
  name: string
  /**
   * `answers`: an HTTP server with this script. `raw`: a server that writes bytes without an HTTP library.
   * `url`: the hook's URL, if this test starts no server for it.
   */
  hook: { answers: Script; identity?: Identity } | { raw: RawScript; identity?: Identity } | { url: string }
  /** The value of the label `outcome` of the metric `sluice_attempts_total`. */
  outcome: string
  statusClass?: string
}

export type DeliveredRow = RowBasics & { verdict: 'delivered' }
export type RetriedRow = RowBasics & {
  verdict: 'retry'
  lastOutcome: string | RegExp
  /** The tier in which the delivery waits. Default: `1m`. */
  tier?: string
  /** The wait that the answer's `Retry-After` asked for, in milliseconds. */
  askedWaitMs?: number
}
export type FinalRow = RowBasics & { verdict: 'final'; lastOutcome: string | RegExp }
export type Row = DeliveredRow | RetriedRow | FinalRow

/** The authority that the workers of the verdict table trust. */
export const authority = createAuthority('Sluice test authority')
const strangeAuthority = createAuthority('An authority that nobody trusts')
/** The names in the certificates of servers on this machine. */
export const here = ['127.0.0.1']
const strange = strangeAuthority.issue({ names: here })

const unsecured = (identity: Identity, code: string) => ({
  hook: {
    raw: { data: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n') } satisfies RawScript,
    identity,
  },
  outcome: 'certificate',
  lastOutcome: `certificate ${code}`,
})

export const selfSignedRow: FinalRow = {
  name: 'a self-signed certificate',
  verdict: 'final',
  ...unsecured(selfSigned({ names: here }), 'DEPTH_ZERO_SELF_SIGNED_CERT'),
}

const certificate = (name: string, identity: Identity, code: string): RetriedRow => ({
  name,
  verdict: 'retry',
  ...unsecured(identity, code),
})

export const untrusted: readonly RetriedRow[] = [
  certificate(
    "a certificate for another's name",
    authority.issue({ names: ['hooks.example.com'] }),
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ),
  certificate(
    'an expired certificate',
    authority.issue({ names: here, fromMs: -2 * dayMs, untilMs: -dayMs }),
    'CERT_HAS_EXPIRED',
  ),
  certificate(
    'a certificate that is not valid yet',
    authority.issue({ names: here, fromMs: dayMs, untilMs: 2 * dayMs }),
    'CERT_NOT_YET_VALID',
  ),
  certificate('a certificate of an untrusted authority', strange, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
  certificate(
    'a certificate with its untrusted authority',
    { ...strange, cert: strange.cert + strangeAuthority.cert },
    'SELF_SIGNED_CERT_IN_CHAIN',
  ),
]
