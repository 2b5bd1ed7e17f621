import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import { isLoopbackName } from '../address/policy.ts'

/** Returns true if only this machine can reach a server that listens on `host`. */
export function isLoopbackHost(host: string): boolean {
  return (
    isLoopbackName(host) || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))
  )
}

/**
 * Returns true if a request to a server on a loopback address names another host. A page in a browser of this
 * machine makes such requests after its name has moved to 127.0.0.1 (DNS rebinding), and could then read the
 * answers. A server that asks for no token has to refuse them.
 */
export function isForAnotherHost({ headers: { host } }: IncomingMessage): boolean {
  return host !== undefined && !isLoopbackHost(host.replace(/:\d*$/, '').toLowerCase())
}

export const forAnotherHost =
  'this server is for this machine only, and the Host header names another: ask for it as 127.0.0.1 or localhost'
