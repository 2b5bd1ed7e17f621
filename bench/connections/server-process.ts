import { startChild } from '../support/child.ts'

/**
 * The kinds of receivers. A `kept` receiver keeps its connections. `h2` speaks HTTP/2 and also keeps its
 * connections. All others close a connection after one answer. A `full` receiver resumes no TLS session.
 */
export type ServerName =
  | 'plain kept'
  | 'plain'
  | 'tls kept'
  | 'tls 1.3'
  | 'tls 1.3 full'
  | 'tls 1.2'
  | 'tls 1.2 full'
  | 'h2'

/** Numbers for one receiver. `resumed`: connections that resumed a TLS session, which `h2` doesn't count. */
export type Counts = { requests: number; connections: number; resumed: number }

export type Ports = Record<ServerName, number>

export type Servers = {
  readonly originOf: (name: ServerName) => string
  /** Returns the counts since the last call. */
  counts(): Promise<Record<ServerName, Counts>>
  stop(): Promise<void>
}

export async function startServers(identitiesFile: string): Promise<Servers> {
  const child = startChild('../connections/servers.ts', [identitiesFile])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's first message
  const ports = (await child.next()) as Ports
  return {
    originOf: (name) => `${name.startsWith('plain') ? 'http' : 'https'}://127.0.0.1:${ports[name]}`,
    async counts() {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's answer
      return (await child.ask({})) as Record<ServerName, Counts>
    },
    stop: () => child.stop(),
  }
}
