/**
 * Returns half a sentence that says what to do about a TLS connection that failed with this code of Node or
 * OpenSSL. Returns `undefined` for all other codes.
 */
export function tlsAdvice(code: string): string | undefined {
  if (untrusted.has(code)) {
    return 'its certificate is not trusted: name a file with the certificate of its authority by kafka.caFile (SLUICE_KAFKA_CA_FILE)'
  }
  if (wrongName.has(code)) {
    return 'its certificate is for another name: connect to a name that is in it (kafka.brokers, and advertised.listeners of the brokers), or set kafka.serverName (SLUICE_KAFKA_SERVER_NAME) to one'
  }
  if (outOfTime.has(code)) {
    return 'its certificate is not valid now: have it renewed at the broker, or set the clock of this machine'
  }
  if (noTls.has(code)) {
    return 'what listens there speaks no TLS: take the port of a listener with TLS (kafka.brokers), or set kafka.ssl (SLUICE_KAFKA_SSL=false)'
  }
  if (/^ERR_SSL_.*ALERT/.test(code)) {
    return 'it refused the connection: where it asks for a client certificate, set kafka.certFile and kafka.keyFile (SLUICE_KAFKA_CERT_FILE, SLUICE_KAFKA_KEY_FILE) to one that it trusts and that is valid now'
  }
  return undefined
}

const untrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_UNTRUSTED',
  'CERT_SIGNATURE_FAILURE',
  'INVALID_CA',
])
const wrongName: ReadonlySet<string> = new Set(['ERR_TLS_CERT_ALTNAME_INVALID'])
const outOfTime: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])
const noTls: ReadonlySet<string> = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'])
