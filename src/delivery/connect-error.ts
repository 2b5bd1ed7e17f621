/** Why no connection was made, where undici and Node have no word for it. */

/** The address of a hook isn't allowed; no connection was made. */
export class AddressNotAllowedError extends Error {
  readonly code = 'SLUICE_ADDRESS_NOT_ALLOWED'
  /** Or the host, where that is refused as it stands, or where the proxy has looked at its address. */
  readonly address: string

  constructor(address: string) {
    super(
      `${address} is not a public address; allow it with delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)`,
    )
    this.address = address
  }
}

/** The name of a hook, or of the proxy, has no address that is known. */
export class NameNotResolvedError extends Error {
  /** c-ares' word for it, such as `ENOTFOUND`. */
  readonly code: string

  constructor(name: string, code: string) {
    super(`${name} can not be resolved: ${code}`)
    this.code = code
  }
}

/** The proxy works, and says that it can't reach the target, or may not. */
export class TargetUnreachableError extends Error {
  readonly code: string

  constructor(code: string) {
    super(`the proxy can not reach the target: ${code}`)
    this.code = code
  }
}

/** The proxy failed: nothing is known of the target, and nothing was sent to it. */
export class ProxyFaultError extends Error {
  /** Never one of undici's own, on some of which it connects again for ever. */
  readonly code = 'SLUICE_PROXY_FAULT'
  /** What the fault was: `ECONNREFUSED`, `CONNECT_503`, `CLOSED`, … */
  readonly reason: string
  /** No target can be reached through it, whichever it is. */
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
