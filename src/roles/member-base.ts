import type { Logger } from 'pino'
import type { FirstSyncs } from '../backfill/first-syncs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import type { createKafka } from '../kafka/client.ts'
import type { GroupConsumer } from '../kafka/consumer.ts'
import type { Pipeline } from '../pipeline/pipeline-ports.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Ending } from './member-shutdown.ts'
import type { Parts } from './parts.ts'
import type { Stalls } from './stalls.ts'
import type { StandingUnits } from './standing-units.ts'

/**
 * Parts that are called by some that are started before them. `startMember` sets each once, when it is there.
 */
export type LaterParts = {
  firstSyncs?: FirstSyncs
  pipeline?: Pipeline
  consumer?: GroupConsumer
}

/** What the parts of a member share. */
export type MemberBase = {
  readonly config: Config
  readonly log: Logger
  readonly parts: Parts
  readonly onFatal: (error: Error) => void
  readonly metrics: Metrics
  readonly catalog: () => Catalog
  readonly kafka: ReturnType<typeof createKafka>
  readonly stalls: Stalls
  readonly standing: StandingUnits
  readonly ending: Ending
  readonly later: LaterParts
}
