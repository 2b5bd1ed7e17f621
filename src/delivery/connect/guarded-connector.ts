import { isIP, type Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { type AddressPolicy, isRefusedHost } from '../../address/policy.ts'
import type { HookTls } from '../../catalog/features/hook-tls.ts'
import { AddressNotAllowedError, ConnectionLostError, NameNotResolvedError } from './connect-error.ts'
import { createDialler } from './dialler.ts'
import type { Addressing, Connector } from './host-addresses.ts'
import type { OutboundProxy } from './proxy.ts'
import type { NameResolver } from './resolver.ts'
import { createTlsConnector } from './tls-connector.ts'

export type ConnectorOptions = {
  policy: AddressPolicy
  resolver: NameResolver
  /**
   * The proxy through which hooks are reached, if there is one. With a proxy, connections are made to the
   * proxy only, and the proxy resolves the names of hooks.
   */
  proxy?: OutboundProxy | undefined
  /** Time that undici has to open a connection, including the TLS handshake. */
  timeoutMs: number
  /** What the connections of one hook show and trust. `undefined`: as all others. */
  tls?: HookTls | undefined
}

/** Creates a connector that opens connections to hooks, but only to addresses that the policy allows. */
export function createConnector(options: ConnectorOptions): Connector {
  const { proxy } = options
  return proxy === undefined ? createDirectConnector(options) : createTunnelConnector({ ...options, proxy })
}

/** Creates a function that finds those addresses of a name that the policy allows. */
export function createAddressing(policy: AddressPolicy, resolver: NameResolver): Addressing {
  return (name, found) => {
    resolver.resolve(name, (resolved) => {
      if (!resolved.ok) {
        found(new NameNotResolvedError(name, resolved.code), [])
        return
      }
      const allowed = allowedOf(resolved.addresses, policy)
      if (allowed.length > 0) found(null, allowed)
      else found(new AddressNotAllowedError(resolved.addresses[0] ?? name), [])
    })
  }
}

/** Returns the list itself if all of its addresses are allowed. */
function allowedOf(addresses: readonly string[], policy: AddressPolicy): readonly string[] {
  const allowed = addresses.filter((address) => policy.allows(address))
  return allowed.length === addresses.length ? addresses : allowed
}

/**
 * Creates a connector that connects to hooks directly. undici doesn't call `lookup` for IP literals, so this
 * function checks them itself. A name is resolved once for each connection, and only checked addresses are
 * connected to. So an attacker gains nothing if the name resolves to another address a moment later. When the
 * socket is connected, the peer's address is checked again.
 */
function createDirectConnector({ policy, resolver, timeoutMs, tls }: ConnectorOptions): Connector {
  const dial = createDialler(createAddressing(policy, resolver), timeoutMs, tls)
  return (options, callback) => {
    const { hostname } = options
    if (isIP(hostname) !== 0 && !policy.allows(hostname)) {
      callback(new AddressNotAllowedError(hostname), null)
      return
    }
    dial(options, (...result) => {
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

/**
 * Creates a connector that reaches hooks through the proxy. The connector checks the host in the hook's URL.
 * The proxy has to check the addresses that the name resolves to. TLS ends at the hook, not at the proxy.
 */
function createTunnelConnector({
  policy,
  proxy,
  timeoutMs,
  tls,
}: ConnectorOptions & { readonly proxy: OutboundProxy }): Connector {
  const secure = createTlsConnector({ timeout: timeoutMs, allowH2: false }, tls)
  return (options, callback) => {
    const { hostname, protocol } = options
    if (isRefusedHost(hostname, policy)) {
      callback(new AddressNotAllowedError(hostname), null)
      return
    }
    const isSecure = protocol === 'https:'
    const port = options.port === '' ? (isSecure ? '443' : '80') : options.port
    proxy.open(hostname.includes(':') ? `[${hostname}]:${port}` : `${hostname}:${port}`, (...result) => {
      const [error, socket] = result
      if (error !== null) callback(error, null)
      else if (isSecure) secure({ ...options, httpSocket: socket }, callback)
      else callback(null, socket)
    })
  }
}
