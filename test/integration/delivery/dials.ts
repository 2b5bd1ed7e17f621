import { isIP, type LookupFunction, Socket } from 'node:net'
import { vi } from 'vitest'

// oxlint-disable-next-line typescript/unbound-method -- called with a socket below
const originalConnect = Socket.prototype.connect

/** Returns a list that gets each address that a socket tries to reach. */
export function watchDials(): string[] {
  const dialled: string[] = []
  vi.spyOn(Socket.prototype, 'connect').mockImplementation(function watch(this: Socket, ...args: unknown[]) {
    this.on('connectionAttempt', (address: string) => dialled.push(address))
    return Reflect.apply(originalConnect, this, args)
  })
  return dialled
}

/**
 * Returns a list that gets each address that a socket is asked to dial. No socket really connects, because
 * these addresses belong to strangers.
 */
export function holdDials(): string[] {
  const dialled: string[] = []
  vi.spyOn(Socket.prototype, 'connect').mockImplementation(function hold(this: Socket, ...args: unknown[]) {
    const { host, lookup } = dialOptions(args[0])
    const give = (...addresses: readonly string[]): void => {
      dialled.push(...addresses)
      this.destroy(new Error('held'))
    }
    if (isIP(host) !== 0) queueMicrotask(() => give(host))
    else {
      lookup(host, { all: true }, (error, found) => {
        if (error !== null) queueMicrotask(() => this.destroy(error))
        else
          queueMicrotask(() =>
            give(...[found].flat().map((one) => (typeof one === 'string' ? one : one.address))),
          )
      })
    }
    return this
  })
  return dialled
}

type DialOptions = { host: string; lookup: LookupFunction }

/**
 * Returns the options of a call of `connect`. `net` and `tls` pass them as they are, or as the first element
 * of a list.
 */
function dialOptions(given: unknown): DialOptions {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- from the connector, by undici and Node
  return (Array.isArray(given) ? given[0] : given) as DialOptions
}
