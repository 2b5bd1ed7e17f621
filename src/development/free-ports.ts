import { createServer } from 'node:net'

/**
 * The lowest port to try. All ports that are tried are lower than the ports that operating systems give to
 * outgoing connections. So no outgoing connection takes a port between its check and its use.
 */
const lowest = 20_000
const choices = 10_000
const maxTries = 200

/** Finds free ports of 127.0.0.1, all different. The first port is `preferred` if `preferred` is free. */
export async function freePorts(count: number, preferred?: number): Promise<number[]> {
  const found = new Set<number>()
  if (preferred !== undefined && (await isFree(preferred))) found.add(preferred)
  for (let tries = 0; found.size < count; tries++) {
    if (tries === maxTries) throw new Error(`found no ${count} free ports from ${lowest} on`)
    const port = lowest + Math.floor(Math.random() * choices)
    if (await isFree(port)) found.add(port)
  }
  return [...found]
}

/** Returns a text which says that the preferred port was taken. Returns '' if the port wasn't taken. */
export function portNote(preferred: number | undefined, brokers: readonly string[]): string {
  const isTaken = preferred !== undefined && !(brokers[0] ?? '').endsWith(`:${preferred}`)
  return isTaken ? `; port ${preferred} was taken` : ''
}

async function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
