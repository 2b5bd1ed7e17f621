import type { FastifyRequest } from 'fastify'
import type { RequestAddress } from './browser.ts'
import { plainAddress, proxiesIn } from './client-address.ts'

/** Determines the client addresses of requests. Uses the headers that trusted proxies have set. */
export class RequestOrigin {
  readonly isTrusted: ReturnType<typeof proxiesIn>
  readonly #addIp: boolean

  constructor({ trustedProxies, addIp }: { trustedProxies: readonly string[]; addIp: boolean }) {
    this.isTrusted = proxiesIn(trustedProxies)
    this.#addIp = addIp
  }

  /**
   * Returns the client's address, which is added to the messages of its request, or `undefined` if no address
   * is to be added. If the connection comes from a trusted proxy, `ip` is the address that Fastify has taken
   * from `X-Forwarded-For`.
   */
  ipOf({ ip }: { ip: string }): string | undefined {
    return this.#addIp ? plainAddress(ip) : undefined
  }

  approachOf({ headers, socket }: Pick<FastifyRequest, 'headers' | 'socket'>): RequestAddress {
    const isBelieved = this.isTrusted !== false && this.isTrusted(socket.remoteAddress ?? '')
    const forwarded = String(headers['x-forwarded-proto']).split(',').at(-1)?.trim()
    const isKnown = isBelieved && (forwarded === 'http' || forwarded === 'https')
    return { host: headers.host, protocol: isKnown ? forwarded : undefined }
  }
}
