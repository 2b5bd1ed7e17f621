import type { AudienceUnits } from '../../audience/unit/units.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import { openAudiences } from './open-audiences.ts'
import { type BackfillMarks, openBackfillMarks } from './backfill-marks.ts'
import type { LaterParts, MemberBase } from './member-base.ts'
import { openFirstSyncs } from './open-first-syncs.ts'
import { topicNames } from '../start/settings.ts'

/** The states of audiences that a member holds, and the marks of destinations that lack values. */
export type MemberStates = {
  readonly audiences: AudienceUnits
  readonly marks: BackfillMarks
  readonly firstSyncs: FirstSyncs
  /** Stops the parts that hold the states. May be called more than once. */
  readonly stopStates: () => Promise<void>
}

/** Opens the states of a member. `formerPartitions` is the number of partitions before the last growth. */
export async function openStates(
  base: MemberBase,
  producer: RecordProducer,
  formerPartitions: number | undefined,
): Promise<MemberStates> {
  const { config, log, kafka, parts, ending, later, onFatal } = base
  const { units: audiences, reader } = await openAudiences({
    ...base,
    producer,
    pipeline: () => pipelineOf(later),
    consumer: () => later.consumer,
    formerPartitions,
  })
  const topic = topicNames(config).backfills
  const layout = config.topics
  const marks = parts.add(openBackfillMarks({ kafka, topic, layout, producer, log, onFatal }))
  const firstSyncs = openFirstSyncs({ ...base, marks, audiences, producer })
  async function stopStates(): Promise<void> {
    await reader.stop()
    await firstSyncs.stop()
    await audiences.stop()
  }
  parts.defer(() => ending.within(stopStates()))
  return { audiences, marks, firstSyncs, stopStates }
}

function pipelineOf({ pipeline }: LaterParts): Pipeline {
  if (pipeline === undefined) throw new Error('the state of audiences has something to deliver too early')
  return pipeline
}
