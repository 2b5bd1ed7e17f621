import type { AudienceUnits } from '../../audience/unit/units.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { openAudiences } from './open-audiences.ts'
import { type BackfillMarks, openBackfillMarks } from './backfill-marks.ts'
import type { MemberBase } from './member-base.ts'
import { DeliveryPort } from './member-ports.ts'
import { openFirstSyncs } from './open-first-syncs.ts'
import { topicNames } from '../start/settings.ts'

/** The states of audiences that a member holds, and the marks of destinations that lack values. */
export type MemberStates = {
  readonly audiences: AudienceUnits
  readonly marks: BackfillMarks
  readonly firstSyncs: FirstSyncs
  /** The port by which the audiences deliver. `startMember` connects it to the pipeline. */
  readonly deliveries: DeliveryPort
  /** Stops the parts that hold the states. May be called more than once. */
  readonly stopStates: () => Promise<void>
}

export type MemberStatesOptions = MemberBase & {
  readonly producer: RecordProducer
  /** The number of partitions before the last growth. */
  readonly formerPartitions: number | undefined
  /** See `FirstSyncsOptions`. */
  readonly backlogOf: (destinationId: string) => number
}

export async function openStates(base: MemberStatesOptions): Promise<MemberStates> {
  const { config, log, kafka, parts, shutdownTime, pauses, onFatal, producer } = base
  const deliveries = new DeliveryPort()
  const { units: audiences, reader } = await openAudiences({
    ...base,
    deliveries,
  })
  const topic = topicNames(config).backfills
  const layout = config.topics
  const marks = parts.add(openBackfillMarks({ kafka, topic, layout, producer, log, onFatal }))
  const firstSyncs = openFirstSyncs({ ...base, marks, audiences })
  pauses.onChange(() => firstSyncs.catalogChanged())
  async function stopStates(): Promise<void> {
    await reader.stop()
    await firstSyncs.stop()
    await audiences.stop()
  }
  parts.defer(() => shutdownTime.within(stopStates()))
  return { audiences, marks, firstSyncs, deliveries, stopStates }
}
