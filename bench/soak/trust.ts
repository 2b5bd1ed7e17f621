import type { Produced } from '../support/producer-process.ts'
import type { Report } from './customers-process.ts'
import type { Losses } from './losses.ts'
import type { Sample } from './samples.ts'

/**
 * Returns what was lost, or why the figures of a soak can't be trusted. Returns `undefined` if all is well.
 */
export function faultOf({
  produced,
  planned,
  report,
  losses,
  last,
  edits,
}: {
  produced: Produced
  planned: number
  report: Report
  losses: Losses
  last: Sample
  /** The number of edits of the catalog, and how many of them the worker has loaded. */
  edits: { made: number; taken: number }
}): string | undefined {
  const { messages, acknowledged, errors } = produced
  if (messages !== planned || acknowledged !== planned) {
    return `${planned} messages were to be produced, ${messages} were, ${acknowledged} acknowledged: ${errors.join('; ')}`
  }
  const { healthyMissing, healthyDead, lost, notRouted } = losses
  if (healthyMissing > 0) {
    const dead = [...healthyDead].map(([reason, count]) => `${count} ${reason}`)
    return `${healthyMissing} messages to healthy destinations have not come; in the dead letters: ${dead.join('; ')}`
  }
  if (lost > 0) return `${lost} messages have neither come nor are they in the dead letters`
  if (notRouted > last.notRouted) {
    return `${notRouted} messages to the destination that was off are nowhere, and ${last.notRouted} are counted as not routed`
  }
  const { unknown, wronglySigned, signedWith } = report
  if (unknown > 0) return `${unknown} requests with a message that was not produced`
  if (wronglySigned > 0 || signedWith.includes(0)) {
    return `signed with each secret: ${signedWith.join(', ')} requests; with none of them: ${wronglySigned}`
  }
  if (edits.taken < edits.made) {
    return `of ${edits.made} edits of the catalog the worker took ${edits.taken}`
  }
  return undefined
}
