import { AddressNotAllowedError, NameNotResolvedError, ProxyFaultError } from '../connect/connect-error.ts'
import { isFileShortage, codeOf } from '../connect/file-shortage.ts'
import { isLostCode } from '../outcomes/load-sign.ts'
import type { Outcome } from '../outcomes/outcome.ts'

/**
 * Node's code for an untrusted certificate if there is no special code for the reason. Examples of such
 * reasons are a key that is too short, and a critical extension that OpenSSL doesn't know. The error's
 * message names the reason.
 */
const otherReason = 'UNSPECIFIED'

/**
 * Codes of OpenSSL and Node for a certificate that isn't trusted. With such a certificate, the handshake ends
 * before the first byte of the request is sent. Source: `X509_verify_cert_error_string`, Node's TLS errors.
 */
const certificateCodes: ReadonlySet<string> = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_FORMAT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'ERROR_IN_CERT_NOT_BEFORE_FIELD',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  otherReason,
])

const timeoutCodes: ReadonlySet<string> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'])

/** Codes for a request that undici refused without using the network. */
const requestCodes: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
])

/**
 * Returns true if a request failed because its connection was lost, and not because of the bytes that came
 * over the connection.
 */
export function isLostConnection(error: Error): boolean {
  return isLostCode(codeOf(error))
}

/** Returns true if no connection was made because the certificate isn't trusted. */
export function isCertificateError(error: Error): boolean {
  return certificateCodes.has(codeOf(error))
}

/** Turns undici's error for a request without an answer into an outcome. */
export function outcomeOfFailure(error: Error): Outcome {
  if (error instanceof AddressNotAllowedError) return { kind: 'address', address: error.address }
  if (error instanceof ProxyFaultError) return { kind: 'proxy', code: error.reason, isDown: error.isDown }
  const code = codeOf(error)
  if (isFileShortage(code)) return { kind: 'files', code }
  if (error instanceof NameNotResolvedError) return { kind: 'dns', code }
  if (timeoutCodes.has(code)) return { kind: 'timeout' }
  if (isCertificateError(error))
    return { kind: 'certificate', code: code === otherReason ? error.message : code }
  if (requestCodes.has(code)) return { kind: 'request', detail: error.message }
  return { kind: 'connection', code }
}
