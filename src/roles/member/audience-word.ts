import type { SpaceCount, ValueCounter } from '../../audience/store/value-counter.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import { mostOfAudiences } from '../../health/audience-reporter.ts'
import type { AudienceWord } from '../../health/health-record.ts'
import type { BackfillMarks } from './backfill-marks.ts'

/** Returns what a member knows of audiences. `undefined`: the catalog has none. */
export function audienceWord({
  counter,
  firstSyncs,
  marks,
}: {
  readonly counter: Pick<ValueCounter, 'counts'>
  readonly firstSyncs: Pick<FirstSyncs, 'progress'>
  readonly marks: Pick<BackfillMarks, 'behind'>
}): AudienceWord | undefined {
  const counts = counter.counts()
  if (counts.length === 0) return undefined
  const { progress } = firstSyncs
  const { behind } = marks
  let room: number = mostOfAudiences.values
  const spaces = counts.map((count) => {
    const word = spaceWord(count, room)
    room -= Object.keys(word.values).length
    return word
  })
  const left = Math.max(0, progress.length - mostOfAudiences.firstSyncs)
  return {
    spaces,
    firstSyncs: progress
      .slice(0, mostOfAudiences.firstSyncs)
      .map(({ destinationId, spaceId, left: count, state }) => ({
        destination: destinationId,
        space: spaceId,
        left: count,
        isWaiting: state === 'waiting',
      })),
    behind: behind
      .slice(0, mostOfAudiences.behind)
      .map(({ destinationId, spaceId }) => ({ destination: destinationId, space: spaceId })),
    untold: left + Math.max(0, behind.length - mostOfAudiences.behind),
  }
}

/** Tells of the properties with most values, as far as there is room. */
function spaceWord(
  { spaceId, units, atMs, values }: SpaceCount,
  room: number,
): AudienceWord['spaces'][number] {
  const most = [...values].toSorted(([, one], [, other]) => other - one)
  const more = most.slice(room).reduce((sum, [, count]) => sum + count, 0)
  return { space: spaceId, units, atMs, values: Object.fromEntries(most.slice(0, room)), more }
}
