import { type buildConnector, Client } from 'undici'
import type { ConnectionOptions, Rider } from '../../../src/delivery/connection.ts'

export { maxHeadBytes, NoAnswerError } from '../../../src/delivery/connection.ts'

/** undici's connection as it is: nothing that comes is looked at, and no request is made once more. */
export class Connection extends Client {
  readonly isConnected = true

  constructor(origin: string | URL, { connect, ...options }: ConnectionOptions) {
    const dial: buildConnector.connector = (to, callback) => connect(to, callback)
    super(origin, { ...options, connect: dial })
  }

  take(rider: Rider): void {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it stands in for the guarded one
    rider.boarded(this as unknown as Parameters<Rider['boarded']>[0])
    this.dispatch(rider.request, rider)
  }

  begin(): void {}

  headCame(): void {}

  readonly wasLostUnsent = false
  readonly wasLostUnheard = false

  closeIfUnread(): void {}
}
