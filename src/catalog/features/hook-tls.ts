import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { type Static, Type } from 'typebox'
import { checkCertificates } from '../../http/reread-file.ts'
import type { FeatureBreach, HookCheck, Unchecked } from './feature-check.ts'

// The client certificate of a hook, and the authorities that may sign its server's certificate.

const variable = '${CATALOG_X} stands for the value of a variable.'

export const tlsSchema = Type.Object(
  {
    certificate: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 65_536,
        description: `The client certificate in PEM, and after it its intermediate certificates. Needs key. ${variable}`,
        examples: ['${CATALOG_CRM_CERTIFICATE}'],
      }),
    ),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: `The private key of the client certificate in PEM, not encrypted. ${variable}`,
        examples: ['${CATALOG_CRM_KEY}'],
      }),
    ),
    ca: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 131_072,
        description: `The certificates of the authorities, in PEM, that may sign the server's certificate. Only these are trusted then. Absent: the public authorities, and those of NODE_EXTRA_CA_CERTS. ${variable}`,
        examples: ['${CATALOG_CRM_CA}'],
      }),
    ),
  },
  {
    additionalProperties: false,
    minProperties: 1,
    description:
      'The client certificate (mutual TLS), and the authorities that are trusted. The URL of the hook must begin with https. A change of a variable in a file takes effect without a restart.',
    examples: [{ certificate: '${CATALOG_CRM_CERTIFICATE}', key: '${CATALOG_CRM_KEY}' }],
  },
)

/** What a hook's connections show and trust. All texts are PEM. The key must never be logged. */
export type HookTls = {
  /** The client certificate with its chain, and its key. Both are set, or none. */
  readonly certificate?: string
  readonly key?: string
  /** The only authorities that are trusted. `undefined`: those that Node trusts. */
  readonly ca?: string
}

/** The fields in which variables are filled in, and which the topic of the catalog has sealed. */
export const tlsFields = ['certificate', 'key', 'ca'] as const

/**
 * Stands for a certificate or a key in a variable that isn't set, where a catalog is checked without its
 * variables. Each rule accepts it.
 */
export const unknownPem = '-----AN UNKNOWN PEM-----'

export function checkTls(tls: Unchecked, check: HookCheck): void {
  const isPem = { isPem: true }
  const certificate = check.text(['tls', 'certificate'], tls['certificate'], certificateBreach, isPem)
  const key = check.text(['tls', 'key'], tls['key'], keyBreach, isPem)
  const ca = check.text(['tls', 'ca'], tls['ca'], certificateBreach, isPem)
  if (tls['certificate'] !== undefined && tls['key'] === undefined)
    check.add(['tls', 'certificate'], {
      problem: 'is set without its key',
      advice: 'add key: ${CATALOG_NAME}',
    })
  if (tls['key'] !== undefined && tls['certificate'] === undefined)
    check.add(['tls', 'key'], {
      problem: 'is set without its certificate',
      advice: 'add certificate: ${CATALOG_NAME}',
    })
  if (check.isSecure === false)
    check.add(['tls'], {
      problem: 'has no effect, because the URL begins with http',
      advice: 'write an https URL, or remove tls',
    })
  const ofPair = certificate !== undefined && key !== undefined ? pairBreach(certificate, key) : undefined
  if (ofPair !== undefined) check.add(['tls', 'key'], ofPair)
  const ofCa = ca !== undefined && ca !== unknownPem ? contextBreach({ ca }) : undefined
  if (ofCa !== undefined) check.add(['tls', 'ca'], ofCa)
}

/** Builds the field `tls` of a hook that has no fault. `filled` fills in the variables of a text. */
export function buildTls(
  { certificate, key, ca }: Static<typeof tlsSchema>,
  filled: (text: string) => string,
): HookTls {
  return {
    ...(certificate !== undefined && { certificate: filled(certificate) }),
    ...(key !== undefined && { key: filled(key) }),
    ...(ca !== undefined && { ca: filled(ca) }),
  }
}

/** Returns when the client certificate of a hook ends, in epoch milliseconds. `undefined`: it has none. */
export function certificateEndMs({ certificate }: HookTls): number | undefined {
  return certificate === undefined ? undefined : new X509Certificate(certificate).validToDate.getTime()
}

function certificateBreach(pem: string): FeatureBreach | undefined {
  if (pem === unknownPem) return undefined
  try {
    checkCertificates(pem)
    return undefined
  } catch {
    return {
      problem: 'is not a whole certificate in PEM',
      advice: 'write all from -----BEGIN CERTIFICATE----- to the last -----END CERTIFICATE-----',
    }
  }
}

function keyBreach(pem: string): FeatureBreach | undefined {
  if (pem === unknownPem) return undefined
  if (/^-----BEGIN ENCRYPTED|^Proc-Type:.*ENCRYPTED/m.test(pem))
    return {
      problem: 'is encrypted',
      advice: 'write it without a passphrase: openssl pkey -in encrypted.pem -out key.pem',
    }
  try {
    createPrivateKey(pem)
    return undefined
  } catch {
    return {
      problem: 'is not a private key in PEM',
      advice: 'write all from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----',
    }
  }
}

function pairBreach(certificate: string, key: string): FeatureBreach | undefined {
  if (certificate === unknownPem || key === unknownPem) return undefined
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)))
    return {
      problem: 'is not the key of the certificate',
      advice: 'write the key for which the first certificate was made',
    }
  return contextBreach({ cert: certificate, key })
}

/** TLS accepts fewer keys than exist, for example none that are too short. */
function contextBreach(options: SecureContextOptions): FeatureBreach | undefined {
  try {
    createSecureContext(options)
    return undefined
  } catch (error) {
    return { problem: `can not be used for TLS (${codeOf(error)})`, advice: 'write a newer one' }
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}
