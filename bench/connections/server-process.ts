import { startChild } from '../support/child.ts'

/**
 * What a receiver does: it keeps its connections or closes each after one answer; `full`: it knows no session again. `h2` speaks
 * HTTP/2 and keeps them.
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

/** `resumed`: connections that resumed a TLS session. */
export type Counts = { requests: number; connections: number; resumed: number }

export type Ports = Record<ServerName, number>

export type Servers = {
  readonly originOf: (name: ServerName) => string
  /** What has come since the call before. */
  counts(): Promise<Record<ServerName, Counts>>
  stop(): Promise<void>
}

export async function startServers(identitiesFile: string): Promise<Servers> {
  const child = startChild('../connections/servers.ts', [identitiesFile])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it sends first
  const ports = (await child.next()) as Ports
  return {
    originOf: (name) => `${name.startsWith('plain') ? 'http' : 'https'}://127.0.0.1:${ports[name]}`,
    async counts() {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it answers
      return (await child.ask({})) as Record<ServerName, Counts>
    },
    stop: () => child.stop(),
  }
}
