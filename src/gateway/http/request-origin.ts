import type { FastifyRequest } from 'fastify'
import type { RequestAddress } from './browser.ts'
import { plainAddress, proxiesIn } from '../../http/client-address.ts'
import type { Client } from '../calls/tracking.ts'

/** Determines the addresses only if they are needed, because most requests need none or only one of them. */
class RequestClient implements Client {
  readonly #request: Pick<FastifyRequest, 'ip' | 'socket'>
  readonly #addIp: boolean
  readonly keepsTimes: boolean

  constructor(request: Pick<FastifyRequest, 'ip' | 'socket'>, addIp: boolean, keepsTimes: boolean) {
    this.#request = request
    this.#addIp = addIp
    this.keepsTimes = keepsTimes
  }

  /**
   * If the connection comes from a trusted proxy, this is the address that Fastify has taken from
   * `X-Forwarded-For`. If that is no address, it is the address of the proxy.
   */
  get address(): string {
    const { ip, socket } = this.#request
    return plainAddress(ip) ?? socket.remoteAddress ?? ''
  }

  get ip(): string | undefined {
    return this.#addIp ? plainAddress(this.#request.ip) : undefined
  }
}

type OriginSettings = {
  readonly trustedProxies: readonly string[]
  readonly addIp: boolean
  readonly correctTimestamps: boolean
}

/** Determines the client addresses of requests. Uses the headers that trusted proxies have set. */
export class RequestOrigin {
  readonly isTrusted: ReturnType<typeof proxiesIn>
  readonly #addIp: boolean
  readonly #correctTimestamps: boolean

  constructor({ trustedProxies, addIp, correctTimestamps }: OriginSettings) {
    this.isTrusted = proxiesIn(trustedProxies)
    this.#addIp = addIp
    this.#correctTimestamps = correctTimestamps
  }

  /** `isImport`: the request imports messages of the past, and has the times that are to be kept. */
  clientOf(request: Pick<FastifyRequest, 'ip' | 'socket'>, isImport = false): Client {
    return new RequestClient(request, this.#addIp, isImport || !this.#correctTimestamps)
  }

  approachOf({ headers, socket }: Pick<FastifyRequest, 'headers' | 'socket'>): RequestAddress {
    const isBelieved = this.isTrusted !== false && this.isTrusted(socket.remoteAddress ?? '')
    const forwarded = String(headers['x-forwarded-proto']).split(',').at(-1)?.trim()
    const isKnown = isBelieved && (forwarded === 'http' || forwarded === 'https')
    return { host: headers.host, protocol: isKnown ? forwarded : undefined }
  }
}
