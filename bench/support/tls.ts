import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { createAuthority, type Identity } from '../../test/support/certificates.ts'

/** The certificates of a benchmark's receivers. Only the senders of the benchmark trust their authority. */
export type Certificates = {
  /**
   * Writes a file for `readIdentities` with an identity for each host, in order of the hosts. Returns its
   * path.
   */
  fileFor(hosts: readonly string[]): string
  /** The environment variables that a sender needs. */
  variables: Record<string, string>
}

/** Makes an authority. Its files are in `folder`. */
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

/** Reads the identities in a file. Returns none without a file. */
export function readIdentities(file: string | undefined): readonly Identity[] {
  if (file === undefined) return []
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by `fileFor`
  return JSON.parse(readFileSync(file, 'utf8')) as Identity[]
}

/**
 * Returns a server with TLS 1.3, or without TLS if there is no identity. Calls `accepted` for each TCP
 * connection, and `served` with the socket of each decrypted connection.
 */
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
