import { type buildConnector, Client } from 'undici'
import type { ConnectionOptions, RequestHandler } from '../../../src/delivery/send/connection.ts'

export { maxHeadBytes, NoAnswerError } from '../../../src/delivery/send/connection.ts'

/** undici's connection without additions. It doesn't check what arrives, and repeats no request. */
export class Connection extends Client {
  readonly isConnected = true

  constructor(origin: string | URL, { connect, ...options }: ConnectionOptions) {
    const dial: buildConnector.connector = (to, callback) => connect(to, callback)
    super(origin, { ...options, connect: dial })
  }

  take(handler: RequestHandler): void {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it replaces the guarded connection
    handler.assigned(this as unknown as Parameters<RequestHandler['assigned']>[0])
    this.dispatch(handler.request, handler)
  }

  isOver(): boolean {
    return false
  }

  begin(): void {}

  headCame(): void {}

  readonly wasLostUnsent = false
  readonly wasLostUnheard = false

  closeIfUnread(): void {}
}
