import { constants } from 'node:crypto'
import { DEFAULT_CIPHERS } from 'node:tls'

/**
 * What a server may not make us compute in TLS. Handshakes are computed on the thread that serves every
 * customer.
 *
 * No Diffie-Hellman over groups that the server makes up (TLS 1.2's DHE): one of 8,192 bits holds everything
 * up for a third of a second, whether its certificate is trusted or not. What is left is elliptic curves,
 * RSA, and TLS 1.3 with its own groups. No handshake on a connection that has had its own (renegotiation): a
 * server could ask for one after the other, as fast as we compute them.
 */
export const tlsOptions = {
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const
