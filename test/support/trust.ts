import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority, type Identity } from './certificates.ts'

/**
 * A server's certificate for 127.0.0.1, and the environment variables with which a `sluice` process trusts
 * it.
 */
export type Trust = {
  /** Options for a receiver. Without `identity`, the receiver uses plain HTTP. */
  secured: { identity?: Identity }
  variables: Record<string, string>
  remove(): void
}

/** The scheme of customers' URLs. Tests that take long or inject faults run with both. */
export type Scheme = 'http' | 'https'

export function createTrust(scheme: Scheme): Trust {
  if (scheme === 'http') return { secured: {}, variables: {}, remove: () => undefined }
  const authority = createAuthority('An authority that a process trusts')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-trust-'))
  const file = join(folder, 'authority.pem')
  writeFileSync(file, authority.cert)
  return {
    secured: { identity: authority.issue({ names: ['127.0.0.1'] }) },
    variables: { NODE_EXTRA_CA_CERTS: file },
    remove: () => rmSync(folder, { recursive: true }),
  }
}
