import type { ExtraPlan } from '../../src/development/broker-node.ts'
import { startOwnBrokers } from './own-brokers.ts'

/** A Kafka broker (on Java) that only the calling test uses. */
export type SingleBroker = {
  /** The address (`host:port`) of the broker's plain listener, for the test itself. */
  direct: string
  stop(): Promise<void>
}

/**
 * Starts a broker. `version` is its version of Kafka. `extra` may give it more listeners than the plain one.
 */
export async function startSingleBroker({
  version,
  extra = { listeners: [] },
}: {
  version?: string
  extra?: ExtraPlan
}): Promise<SingleBroker> {
  const brokers = await startOwnBrokers({
    count: 1,
    ...(version !== undefined && { version }),
    extraOf: () => extra,
  })
  return { direct: brokers.direct.join(), stop: () => brokers.stop() }
}
