import type { FastifyRequest } from 'fastify'
import type { RequestAddress } from './browser.ts'
import { plainAddress, proxiesIn } from './client-address.ts'

/** Where requests come from, by what trusted proxies say of them. */
export class RequestOrigin {
  readonly isTrusted: ReturnType<typeof proxiesIn>
  readonly #addIp: boolean

  constructor({ trustedProxies, addIp }: { trustedProxies: readonly string[]; addIp: boolean }) {
    this.isTrusted = proxiesIn(trustedProxies)
    this.#addIp = addIp
  }

  /**
   * What messages get as the address that they came from: by `X-Forwarded-For` where the connection is that
   * of a trusted proxy.
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
