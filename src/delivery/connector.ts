import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import type { AddressPolicy } from './address-policy.ts'

/** The address of a hook isn't allowed; no connection was made. */
export class AddressNotAllowedError extends Error {
  readonly code = 'SLUICE_ADDRESS_NOT_ALLOWED'
  readonly address: string

  constructor(address: string) {
    super(
      `${address} is not a public address; allow it with delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)`,
    )
    this.address = address
  }
}

/**
 * Opens connections to allowed addresses only. undici doesn't ask a `lookup` for IP literals, so literals
 * are checked here; names are resolved once, and only the addresses that were checked are dialled, so a name
 * that resolves differently a moment later gains nothing. The peer is checked again once connected.
 */
export function createConnector({
  policy,
  timeoutMs,
}: {
  policy: AddressPolicy
  timeoutMs: number
}): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false, lookup: createLookup(policy) })
  return (options, callback) => {
    const hostname = options.hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(hostname) !== 0 && !policy.allows(hostname)) {
      callback(new AddressNotAllowedError(hostname), null)
      return
    }
    connect(options, (...result) => {
      const [error, socket] = result
      if (error !== null) callback(error, null)
      else verifyPeer(policy, socket, callback)
    })
  }
}

function verifyPeer(policy: AddressPolicy, socket: Socket, callback: buildConnector.Callback): void {
  const peer = socket.remoteAddress
  if (peer !== undefined && policy.allows(peer)) {
    callback(null, socket)
    return
  }
  socket.destroy()
  callback(peer === undefined ? new ConnectionLostError() : new AddressNotAllowedError(peer), null)
}

class ConnectionLostError extends Error {
  readonly code = 'ECONNRESET'

  constructor() {
    super('the peer closed the connection at once')
  }
}

function createLookup(policy: AddressPolicy): LookupFunction {
  return (hostname, options, callback) => {
    systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) {
        callback(error, '', 0)
        return
      }
      const [first] = addresses
      const allowed = addresses.filter(({ address }) => policy.allows(address))
      const [chosen] = allowed
      if (chosen === undefined) callback(new AddressNotAllowedError(first?.address ?? hostname), '', 0)
      else if (options.all) callback(null, allowed)
      else callback(null, chosen.address, chosen.family)
    })
  }
}
