import type { LookupAddress } from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import buildConnector from 'undici/lib/core/connect.js'
import { NameNotResolvedError } from './connect-error.ts'
import { createTlsConnector } from './tls-connector.ts'

/**
 * Finds the addresses of a name to connect to, and passes one or more addresses, or an error, to the callback
 * `dialled`.
 */
type Addressing = (name: string, dialled: (error: Error | null, addresses: readonly string[]) => void) => void

/**
 * Time in milliseconds after which the next address is tried. The last address gets all of the remaining
 * time.
 */
const nextAddressMs = 1_000
/**
 * Limit on the addresses of one name that one connection tries. A request's deadline leaves no time for more
 * addresses.
 */
const maxAddresses = 4

/**
 * Buffer into which all connections read, one at a time. Without this buffer, Node would allocate a buffer of
 * the same size for each read.
 */
const readBuffer = Buffer.alloc(64 * 1024)

/**
 * Adds the newly read bytes to the socket's stream. Without this function, Node would allocate a buffer of 64
 * KiB for each read, and then shrink the buffer to the size of the answer, about a hundred bytes. Node calls
 * this function as a method of the socket.
 */
function pushRead(this: Socket, bytes: number): boolean {
  const chunk = Buffer.allocUnsafe(bytes)
  readBuffer.copy(chunk, 0, 0, bytes)
  return this.push(chunk)
}

/** Creates a connector for undici that gets the addresses of names from `addressing`. */
export function createDialler(addressing: Addressing, timeoutMs: number): buildConnector.connector {
  const lookup: LookupFunction = (name, { all }, callback) => {
    addressing(name, (error, addresses) => {
      const toDial = error === null ? dialOrder(addresses) : []
      const [first] = toDial
      if (first === undefined) callback(error ?? new NameNotResolvedError(name, 'ENODATA'), '', 0)
      else if (all === true) callback(null, toDial)
      else callback(null, first.address, first.family)
    })
  }
  const options: buildConnector.BuildOptions = {
    timeout: timeoutMs,
    allowH2: false,
    lookup,
    onread: { buffer: readBuffer, callback: pushRead },
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: nextAddressMs,
  }
  const connect = buildConnector(options)
  const connectByTls = createTlsConnector(options)
  return (to, callback) => {
    if (to.protocol === 'https:') connectByTls(to, callback)
    else connect(to, callback)
  }
}

/**
 * Returns the addresses in the order in which they are passed to Node. Node then tries IPv4 and IPv6
 * addresses in turn (RFC 8305), and starts with the family of the first address. IPv4 comes first, because
 * nearly every hook has an IPv4 address, and because an IPv4 address fails at once on a machine without IPv4.
 * Within each family, the first address is chosen at random, so that each address gets its share of the
 * connections.
 */
function dialOrder(addresses: readonly string[]): LookupAddress[] {
  const start = addresses.length > 1 ? Math.floor(Math.random() * addresses.length) : 0
  const ipv4: LookupAddress[] = []
  const ipv6: LookupAddress[] = []
  for (let index = 0; index < addresses.length; index++) {
    const address = addresses[(start + index) % addresses.length] ?? ''
    if (address.includes(':')) ipv6.push({ address, family: 6 })
    else ipv4.push({ address, family: 4 })
  }
  if (ipv6.length === 0) return ipv4.slice(0, maxAddresses)
  if (ipv4.length === 0) return ipv6.slice(0, maxAddresses)
  return [...ipv4.slice(0, maxAddresses / 2), ...ipv6.slice(0, maxAddresses / 2)]
}
