import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority, type Identity } from './certificates.ts'

/** What a server of 127.0.0.1 shows, and what a `sluice` process needs in its environment to trust it. */
export type Trust = {
  /** For a receiver; none over plain HTTP. */
  secured: { identity?: Identity }
  variables: Record<string, string>
  remove(): void
}

/** How customers are reached. Tests that take long or break things are played by both. */
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
