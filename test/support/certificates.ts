import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'

/**
 * Makes certificates while a test runs, by writing their DER by hand. So no program has to be installed, and
 * a test can get a certificate with a particular fault. The certificates are X.509 version 3, signed with
 * ECDSA P-256. Source: RFC 5280, section 4.
 */

/** The key and the certificate of a TLS server, as PEM texts for `tls.createServer`. */
export type Identity = { key: string; cert: string }

/**
 * Properties of a certificate. `names`: DNS names and IPv4 addresses. `fromMs` and `untilMs`: the start and
 * the end of its validity, in milliseconds relative to now. The defaults are one day before and one day after
 * now. `key`: the kind of key, by default ECDSA P-256. `isOdd`: the certificate has a critical extension that
 * no program knows.
 */
export type Wishes = {
  names: readonly string[]
  fromMs?: number
  untilMs?: number
  key?: 'ecdsa' | 'rsa'
  isOdd?: boolean
}

export type Authority = {
  /**
   * The authority's certificate as PEM. A program that has to trust the authority gets this certificate, for
   * example by `NODE_EXTRA_CA_CERTS`.
   */
  cert: string
  issue(wishes: Wishes): Identity
}

export const dayMs = 24 * 3_600_000

/** Creates a small certificate authority. Only programs that are given its certificate trust it. */
export function createAuthority(name: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = { name, key: privateKey }
  const extensions = [basicConstraintsOfAuthority, keyUsageOfAuthority]
  return {
    cert: certificate({ subject: name, publicKey, issuer, extensions }),
    issue: (wishes) => issueBy(wishes, issuer),
  }
}

/** Issues a certificate that is signed with its own key, and by no authority. */
export function selfSigned(wishes: Wishes): Identity {
  return issueBy(wishes)
}

type Issuer = { name: string; key: KeyObject }

function issueBy({ names, fromMs, untilMs, key, isOdd = false }: Wishes, authority?: Issuer): Identity {
  const { publicKey, privateKey } =
    key === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = names[0] ?? 'nobody'
  const cert = certificate({
    subject,
    publicKey,
    issuer: authority ?? { name: subject, key: privateKey },
    fromMs,
    untilMs,
    extensions: [subjectAltNames(names), ...(isOdd ? [oddExtension] : [])],
  })
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
}

function certificate({
  subject,
  publicKey,
  issuer,
  fromMs = -dayMs,
  untilMs = dayMs,
  extensions,
}: {
  subject: string
  publicKey: KeyObject
  issuer: Issuer
  fromMs?: number | undefined
  untilMs?: number | undefined
  extensions: readonly Buffer[]
}): string {
  const signatureAlgorithm = sequence(ecdsaWithSha256)
  const signed = sequence(
    der(0xa0, integer(2)),
    der(tags.integer, Buffer.from([0x01]), randomBytes(8)),
    signatureAlgorithm,
    commonName(issuer.name),
    sequence(time(Date.now() + fromMs), time(Date.now() + untilMs)),
    commonName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const signature = sign('sha256', signed, issuer.key)
  return new X509Certificate(sequence(signed, signatureAlgorithm, bitString(signature))).toString()
}

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
}

const ecdsaWithSha256 = der(tags.oid, Buffer.from('2a8648ce3d040302', 'hex'))
const commonNameOid = der(tags.oid, Buffer.from('550403', 'hex'))
const basicConstraintsOfAuthority = extension('551d13', sequence(Buffer.from([0x01, 0x01, 0xff])))
/** A critical extension with an identifier that nobody uses (1.2.3.4.5). */
const oddExtension = extension('2a030405', sequence(), der(tags.boolean, Buffer.from([0xff])))
/** Bits 5 and 6 allow the key to sign certificates and revocation lists. */
const keyUsageOfAuthority = extension('551d0f', der(tags.bits, Buffer.from([0x01, 0x06])))

function subjectAltNames(names: readonly string[]): Buffer {
  const entries = names.map((name) =>
    isIP(name) === 4 ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name)),
  )
  return extension('551d11', sequence(...entries))
}

function extension(oid: string, value: Buffer, ...critical: Buffer[]): Buffer {
  return sequence(der(tags.oid, Buffer.from(oid, 'hex')), ...critical, der(tags.octets, value))
}

function commonName(name: string): Buffer {
  return sequence(der(tags.set, sequence(commonNameOid, der(tags.utf8, Buffer.from(name)))))
}

/** Encodes a time as GeneralizedTime, for example 20091110230000Z. */
function time(epochMs: number): Buffer {
  const digits = new Date(epochMs)
    .toISOString()
    .replace(/\.\d+Z$/, '')
    .replace(/\D/g, '')
  return der(tags.time, Buffer.from(`${digits}Z`))
}

function integer(value: number): Buffer {
  return der(tags.integer, Buffer.from([value]))
}

function bitString(bits: Buffer): Buffer {
  return der(tags.bits, Buffer.from([0]), bits)
}

function sequence(...parts: Buffer[]): Buffer {
  return der(tags.sequence, ...parts)
}

/** Encodes a value in DER as tag, length and content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(content.length)]), content])
}

/**
 * Encodes a length. A length up to 127 takes one octet. A longer one takes an octet with the number of octets
 * that follow, and then these octets.
 */
function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length]
  if (length < 0x100) return [0x81, length]
  return [0x82, length >> 8, length & 0xff]
}
