import { constants } from 'node:crypto'
import { DEFAULT_CIPHERS } from 'node:tls'

/**
 * TLS options that limit how much computation a server can demand. Handshakes are computed on the thread that
 * serves all customers.
 *
 * The options exclude Diffie-Hellman with groups that the server chooses freely (DHE in TLS 1.2). A handshake
 * with a group of 8,192 bits blocks the thread for a third of a second, even if the server's certificate
 * isn't trusted. Elliptic curves, RSA, and TLS 1.3 with its fixed groups remain allowed. The options also
 * exclude renegotiation, which is another handshake on the same connection. With renegotiation, a server
 * could demand an endless series of handshakes.
 */
export const tlsOptions = {
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const
