import { once } from 'node:events'
import { createServer } from 'node:net'
import { StartError } from './start-error.ts'

/** Where a server listens. */
export type Listening = {
  host: string
  port: number
  /** `The gateway` */
  what: string
  /** How the variables of its host and port begin: `SLUICE_HTTP`. */
  settings: string
}

/** Awaits that a server listens. Where it can't, the error says in one line what to set. */
export async function listening<T>(server: Promise<T>, address: Listening): Promise<T> {
  try {
    return await server
  } catch (cause) {
    throw new StartError(problemOf(address, cause), { cause })
  }
}

/**
 * Throws where a server couldn't listen there, which is tried: before what would be started in vain, and
 * ended again.
 */
export async function refuseTakenPort(address: Listening): Promise<void> {
  const { host, port } = address
  const server = createServer()
  server.listen({ host, port })
  await listening(once(server, 'listening'), address)
  server.close()
  await once(server, 'close')
}

function problemOf({ host, port, what, settings }: Listening, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
  const advice = ofPort.has(code)
    ? `set ${settings}_PORT to another port`
    : `set ${settings}_HOST to an address of this machine`
  return `${what} can not listen on ${host}:${port} (${code}): ${advice}.`
}

/** The port is taken, or kept for the administrator. */
const ofPort: ReadonlySet<string> = new Set(['EADDRINUSE', 'EACCES'])
