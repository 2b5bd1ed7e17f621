import { constants } from 'node:crypto'
import { DEFAULT_CIPHERS } from 'node:tls'

/**
 * TLS options that limit the computations which a server can demand. Handshakes are computed on the thread
 * that serves every customer.
 *
 * The options exclude Diffie-Hellman over groups that the server makes up (TLS 1.2's DHE). One group of 8,192
 * bits blocks the thread for a third of a second, whether the server's certificate is trusted or not.
 * Elliptic curves, RSA, and TLS 1.3 with its own groups remain. The options also exclude renegotiation, which
 * is another handshake on the same connection. A server could ask for one handshake after the other, as fast
 * as we compute them.
 */
export const tlsOptions = {
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const
