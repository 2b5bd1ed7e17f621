import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { AutoPauses } from './auto-pauses.ts'
import type { NoticesFeed } from './notices-feed.ts'
import type { ConnectionLimits } from '../start/connection-limits.ts'
import type { Parts } from '../start/parts.ts'
import type { Stalls } from '../start/stalls.ts'
import type { FailingUnits } from './failing-units.ts'
import type { GroupPort } from './member-ports.ts'
import type { ShutdownTime } from './shutdown-time.ts'

/** The values and parts that all parts of a member share. */
export type MemberBase = {
  readonly config: Config
  readonly log: Logger
  readonly parts: Parts
  readonly onFatal: (error: Error) => void
  readonly metrics: WorkerMetrics
  readonly catalog: () => Catalog
  readonly kafka: ReturnType<typeof createKafka>
  readonly stalls: Stalls
  readonly failingUnits: FailingUnits
  readonly shutdownTime: ShutdownTime
  readonly group: GroupPort
  readonly pauses: AutoPauses
  readonly feed: NoticesFeed
  readonly limits: ConnectionLimits
}
