import type { LookupAddress } from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import buildConnector from 'undici/lib/core/connect.js'
import type { HookTls } from '../../catalog/features/hook-tls.ts'
import { NameNotResolvedError } from './connect-error.ts'
import { type Addressing, type Connector, isIpv6, shuffled } from './host-addresses.ts'
import { createTlsConnector } from './tls-connector.ts'

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

/**
 * Creates a connector for undici that gets the addresses of names from `addressing`. If the options of a
 * connection have `addresses`, these decide which address is tried first, and learn whether it was reached.
 * `tls`: see `createTlsConnector`.
 */
export function createDialler(addressing: Addressing, timeoutMs: number, tls?: HookTls): Connector {
  const options: buildConnector.BuildOptions = {
    timeout: timeoutMs,
    allowH2: false,
    onread: { buffer: readBuffer, callback: pushRead },
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: nextAddressMs,
  }
  const connectByTls = createTlsConnector(options, tls)
  return (to, callback) => {
    const { addresses } = to
    let first: string | undefined
    const lookup: LookupFunction = (name, { all }, found) => {
      addressing(name, (error, allowed) => {
        const toDial = error === null ? familiesInTurn(addresses?.inOrder(allowed) ?? shuffled(allowed)) : []
        const [head] = toDial
        first = head?.address
        if (first !== undefined) addresses?.dialling(first)
        if (head === undefined) found(error ?? new NameNotResolvedError(name, 'ENODATA'), '', 0)
        else if (all === true) found(null, toDial)
        else found(null, head.address, head.family)
      })
    }
    const dialled: buildConnector.Callback = (...result) => {
      const [, socket] = result
      if (first !== undefined) addresses?.dialled(first, socket?.remoteAddress)
      callback(...result)
    }
    // Each connection needs its own connector, because a connector takes its `lookup` only when it is built.
    if (to.protocol === 'https:') connectByTls({ ...to, lookup }, dialled)
    else buildConnector({ ...options, lookup })(to, dialled)
  }
}

/**
 * Returns the addresses in the order in which they are passed to Node. Node then tries IPv4 and IPv6
 * addresses in turn (RFC 8305), and starts with the family of the first address. IPv4 comes first, because
 * nearly every hook has an IPv4 address, and because an IPv4 address fails at once on a machine without IPv4.
 * Within each family, the order stays as it was.
 */
function familiesInTurn(addresses: readonly string[]): LookupAddress[] {
  const ipv4: LookupAddress[] = []
  const ipv6: LookupAddress[] = []
  for (const address of addresses) {
    if (isIpv6(address)) ipv6.push({ address, family: 6 })
    else ipv4.push({ address, family: 4 })
  }
  if (ipv6.length === 0) return ipv4.slice(0, maxAddresses)
  if (ipv4.length === 0) return ipv6.slice(0, maxAddresses)
  return [...ipv4.slice(0, maxAddresses / 2), ...ipv6.slice(0, maxAddresses / 2)]
}
