import type { FastifyRequest } from 'fastify'
import type { RequestAddress } from './browser.ts'
import { plainAddress, proxiesIn } from './client-address.ts'

/** Finds out where requests come from. Believes the headers of trusted proxies. */
export class RequestOrigin {
  readonly isTrusted: ReturnType<typeof proxiesIn>
  readonly #addIp: boolean

  constructor({ trustedProxies, addIp }: { trustedProxies: readonly string[]; addIp: boolean }) {
    this.isTrusted = proxiesIn(trustedProxies)
    this.#addIp = addIp
  }

  /**
   * Returns the address that the messages of a request get. `X-Forwarded-For` counts when the connection
   * comes from a trusted proxy.
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
