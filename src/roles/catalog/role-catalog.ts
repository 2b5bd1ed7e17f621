import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import type { CatalogFile } from '../../catalog/file/file.ts'
import type { Config } from '../../config/schema.ts'
import type { CommonMetrics } from '../../telemetry/common-metrics.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import type { CatalogTopic } from './followed-topic.ts'

export type OpenCatalogOptions = {
  config: Config
  metrics: CommonMetrics
  log: Logger
  /** The role that reads the catalog. */
  role: KafkaRole
  /** The private addresses that hooks may have. Roles that send nothing to hooks don't set this. */
  allowAddresses?: readonly string[]
  /** Says whether the log line about a change of the catalog counts sources or destinations. */
  counts?: 'sources' | 'destinations'
}

export type RoleCatalog = Omit<CatalogFile, 'stop'> & {
  /**
   * Says that the role has started. From now on, the state folder has the outline of the catalog in force. A
   * role that never starts doesn't use its catalog, so it leaves the outline as it is.
   */
  inForce(): void
  /**
   * Calls `listener` after each change of the file's catalog, once the gauges and the log show the change.
   */
  onChange(listener: (catalog: Catalog, before: Catalog) => void): void
  /** Returns in words what keeps this process from the present catalog. `undefined` if nothing does. */
  problem(): string | undefined
  /** What else the topic of the catalog has. Absent if the catalog is in a file. */
  readonly topic?: Pick<CatalogTopic, 'tokens' | 'revision' | 'trouble'>
  /** Stops at once. Resolves once the outline is written. */
  stop(): Promise<void>
}
