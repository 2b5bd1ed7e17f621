import { once } from 'node:events'
import { createServer } from 'node:net'
import { messageOf } from '../../kafka/wire/errors.ts'
import { StartError } from './start-error.ts'

/** The address on which a server listens. */
export type Listening = {
  host: string
  port: number
  /** The name of the server, such as `The gateway`. Messages about the server begin with this name. */
  what: string
  /** The common prefix of the environment variables for the server's host and port, such as `SLUICE_HTTP`. */
  settings: string
}

/**
 * Waits until a server listens. If the server can't listen, throws an error that says in one line which
 * setting to change.
 */
export async function listening<T>(server: Promise<T>, address: Listening): Promise<T> {
  try {
    return await server
  } catch (cause) {
    throw new StartError(problemOf(address, cause), { cause })
  }
}

/**
 * Tries to listen at an address, and throws if that isn't possible. Call this before other parts are started,
 * so that they don't have to be stopped again if the port is taken.
 */
async function refuseTakenPort(address: Listening): Promise<void> {
  const { host, port } = address
  const server = createServer()
  server.listen({ host, port })
  await listening(once(server, 'listening'), address)
  server.close()
  await once(server, 'close')
}

/** Does the same as `refuseTakenPort` for several addresses, and names all that are taken. */
export async function refuseTakenPorts(addresses: readonly Listening[]): Promise<void> {
  const tried = await Promise.allSettled(addresses.map((address) => refuseTakenPort(address)))
  const problems = tried.flatMap((one) => (one.status === 'rejected' ? [messageOf(one.reason)] : []))
  if (problems.length > 0) throw new StartError(problems.join('\n'))
}

function problemOf({ host, port, what, settings }: Listening, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
  const advice = ofPort.has(code)
    ? `set ${settings}_PORT to another port`
    : `set ${settings}_HOST to an address of this machine`
  return `${what} can not listen on ${host}:${port} (${code}): ${advice}.`
}

/** The codes of the errors which say that the port is taken, or that it is reserved for root. */
const ofPort: ReadonlySet<string> = new Set(['EADDRINUSE', 'EACCES'])
