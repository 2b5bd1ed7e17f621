import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { createAuthority, type Identity } from '../../test/support/certificates.ts'

/** Certificates of a benchmark's receivers, by an authority that only its senders trust. */
export type Certificates = {
  /** The file with an identity for each host, in their order, for `readIdentities`. */
  fileFor(hosts: readonly string[]): string
  /** What a sender needs in its environment. */
  variables: Record<string, string>
}

/** Makes an authority; with its files in `folder`. */
export function createCertificates(folder: string): Certificates {
  const authority = createAuthority('An authority of benchmarks')
  const authorityFile = join(folder, 'authority.pem')
  writeFileSync(authorityFile, authority.cert)
  let files = 0
  return {
    fileFor(hosts) {
      const file = join(folder, `identities-${++files}.json`)
      writeFileSync(file, JSON.stringify(hosts.map((host) => authority.issue({ names: [host] }))))
      return file
    },
    variables: { NODE_EXTRA_CA_CERTS: authorityFile },
  }
}

/** None without a file. */
export function readIdentities(file: string | undefined): readonly Identity[] {
  if (file === undefined) return []
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `fileFor` has written
  return JSON.parse(readFileSync(file, 'utf8')) as Identity[]
}

/** A server of TLS 1.3, or without TLS where there is no identity. `accepted` gets each TCP connection, `served` what is inside. */
export function createReceivingServer(
  identity: Identity | undefined,
  { accepted, served }: { accepted: () => void; served: (socket: Socket) => void },
): Server {
  const options = { noDelay: true }
  const server =
    identity === undefined
      ? createTcpServer(options, served)
      : createTlsServer({ ...options, ...identity, minVersion: 'TLSv1.3' }, served)
  return server.on('connection', accepted)
}
