import { percent } from '../data/format.ts'
import type { Replay } from '../data/types.ts'

/**
 * How far a replay is: what it has handed over of what was counted, or the share of the topic that it has
 * read.
 */
export function Progress({ replay }: { replay: Replay }) {
  const share = shareOf(replay)
  return (
    <>
      <progress class="bar" value={share} max={1} aria-label={`Progress of ${replay.id}`} />{' '}
      <span class="number">{percent(share)}</span>
    </>
  )
}

function shareOf({ state, counted, sent, read }: Replay): number {
  if (state === 'done' || state === 'delivering') return 1
  if (counted !== null && counted.records > 0) return Math.min(1, sent.records / counted.records)
  return read.of === 0 ? 0 : Math.min(1, read.offsets / read.of)
}
