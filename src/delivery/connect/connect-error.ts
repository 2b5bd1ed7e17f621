// Errors for those failures to connect that have no error class in undici or Node.

/** The address of a hook isn't allowed, so no connection was made. */
export class AddressNotAllowedError extends Error {
  readonly code = 'SLUICE_ADDRESS_NOT_ALLOWED'
  /**
   * The address that isn't allowed. If Sluice refused the host itself, this is the host. If the proxy refused
   * it, this is the host with its port.
   */
  readonly address: string

  constructor(address: string) {
    super(
      `${address} is not a public address; allow it with delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)`,
    )
    this.address = address
  }
}

/** No address was found for the host name of a hook or of the proxy. */
export class NameNotResolvedError extends Error {
  /** The error code of c-ares, such as `ENOTFOUND`. */
  readonly code: string

  constructor(name: string, code: string) {
    super(`${name} can not be resolved: ${code}`)
    this.code = code
  }
}

/** The proxy works, but it can't reach the target or may not connect to it. */
export class TargetUnreachableError extends Error {
  readonly code: string

  constructor(code: string) {
    super(`the proxy can not reach the target: ${code}`)
    this.code = code
  }
}

/** The proxy failed. Nothing is known about the target, and nothing was sent to it. */
export class ProxyFaultError extends Error {
  /**
   * A code that undici itself doesn't use. After an error with certain codes of its own, undici would connect
   * again and again, forever.
   */
  readonly code = 'SLUICE_PROXY_FAULT'
  /** The fault: `ECONNREFUSED`, `CONNECT_503`, `CLOSED`, … */
  readonly reason: string
  /** True if the proxy can't reach any target. */
  readonly isDown: boolean

  constructor(reason: string, { isDown }: { isDown: boolean }) {
    super(`the proxy failed: ${reason}`)
    this.reason = reason
    this.isDown = isDown
  }
}

export class ConnectionLostError extends Error {
  readonly code = 'ECONNRESET'

  constructor() {
    super('the peer closed the connection at once')
  }
}
