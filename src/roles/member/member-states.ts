import { ValueCounter } from '../../audience/store/value-counter.ts'
import type { AudienceUnits } from '../../audience/unit/units.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { openAudiences } from './open-audiences.ts'
import { type BackfillMarks, openBackfillMarks } from './backfill-marks.ts'
import type { MemberBase } from './member-base.ts'
import { DeliveryPort } from './member-ports.ts'
import { mayConcernSpaces, openFirstSyncs } from './open-first-syncs.ts'
import { topicNames } from '../start/settings.ts'

/** The states of audiences that a member holds, and the marks of destinations that lack values. */
export type MemberStates = {
  readonly audiences: AudienceUnits
  readonly marks: BackfillMarks
  readonly firstSyncs: FirstSyncs
  /** Counts the values of audiences. */
  readonly counter: ValueCounter
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
  let known = base.catalog()
  pauses.onChange(() => {
    const [before, now] = [known, base.catalog()]
    known = now
    if (mayConcernSpaces(before, now)) firstSyncs.catalogChanged()
  })
  const counter = new ValueCounter({
    statesOf: (unit, query) => audiences.statesOf(unit, query),
    spaces: () => spacesOf(pauses.catalog),
    onFailed: (error) => log.warn({ err: error }, 'the values of audiences can not be counted, trying again'),
  })
  async function stopStates(): Promise<void> {
    await reader.stop()
    await Promise.all([firstSyncs.stop(), counter.stop()])
    await audiences.stop()
  }
  parts.defer(() => shutdownTime.within(stopStates()))
  return { audiences, marks, firstSyncs, counter, deliveries, stopStates }
}

/** The sources of a catalog that have audiences. */
function spacesOf({ sources }: Catalog): readonly string[] {
  return [...sources.values()].flatMap(({ id, kind }) => (kind === 'audiences' ? [id] : []))
}
