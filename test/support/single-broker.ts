import type { ExtraPlan } from '../../src/development/broker-node.ts'
import { startOwnBrokers } from './own-brokers.ts'

/** A broker of one's own, on Java. */
export type SingleBroker = {
  /** `host:port` of its plain listener, for the test itself. */
  direct: string
  stop(): Promise<void>
}

/** Starts one, of `version`, with more ways in than the plain one. */
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
