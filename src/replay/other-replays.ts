import { headerText, sourceIdOf } from '../message/record-headers.ts'
import { isInTime, type SourceRecord } from './chosen.ts'
import type { JobOrder } from './job.ts'
import { type Job, type Jobs, stateOf } from './jobs.ts'
import { isSelectedLetter, type Selection } from './selection.ts'
import { knowsUnsent } from './unsent.ts'

/** The replay whose records are compared. `id` and `atMs` are `undefined` for one that isn't ordered yet. */
export type OwnReplay = Pick<JobOrder, 'selection' | 'topicId'> & {
  readonly id?: string | undefined
  readonly atMs?: number | undefined
}

/**
 * What the other replays have sent, according to `replay-jobs`: an order has the selection and the offsets,
 * and the progress says how far they were read, and which selected records were not sent. A replay that was
 * ordered earlier and is under way counts as if it had sent all of its records already. So of two equal
 * orders, the second sends nothing. If the first is stopped, a later replay sends its rest.
 */
export class OtherReplays {
  readonly #jobs: Jobs
  readonly #own: OwnReplay
  #others: readonly Job[] = []
  #changes = -1

  constructor(jobs: Jobs, own: OwnReplay) {
    this.#jobs = jobs
    this.#own = own
  }

  /** `messageId` is the id of the message that would be sent. */
  haveSent(record: SourceRecord, messageId: string | undefined): boolean {
    if (this.#changes !== this.#jobs.changes) {
      this.#changes = this.#jobs.changes
      this.#others = [...this.#jobs.remembered()].filter((job) => this.#mayOverlap(job))
    }
    return this.#others.some((job) => this.#hasSent(job, record, messageId))
  }

  #mayOverlap({ order, progress }: Job): boolean {
    const { id, selection, topicId } = this.#own
    if (order.id === id || order.selection.from !== selection.from) return false
    if (topicId !== undefined && order.topicId !== undefined && topicId !== order.topicId) return false
    return knowsUnsent(progress) && mayShare(order.selection, selection)
  }

  #hasSent(job: Job, record: SourceRecord, messageId: string | undefined): boolean {
    const { order, progress } = job
    const { partition, offset, timestampMs } = record
    const range = order.ranges[partition]
    if (range === undefined || offset < range.start || offset >= range.end) return false
    if (!this.#isSentWhole(job) && offset >= (progress?.offsets[partition] ?? range.start)) return false
    // Without ids, a topic that was created again can't be told from the earlier one. But its records are
    // younger than the order.
    const isSameTopic = this.#own.topicId !== undefined && order.topicId !== undefined
    if (!isSameTopic && timestampMs > order.atMs) return false
    const isUnsent = progress?.unsent?.some(
      ([of, start, end]) => of === partition && offset >= start && offset < end,
    )
    return isUnsent !== true && isSelected(record, order.selection, messageId)
  }

  #isSentWhole(job: Job): boolean {
    const state = stateOf(job)
    if (state === 'done') return true
    if (state === 'stopped') return false
    const { id = '', atMs = Infinity } = this.#own
    const { order } = job
    return order.atMs < atMs || (order.atMs === atMs && order.id < id)
  }
}

/** Returns false if no record can belong to both selections. */
function mayShare(one: Selection, other: Selection): boolean {
  if (one.from === 'events' && one.destinationId !== other.destinationId) return false
  return (
    !differs(one.destinationId, other.destinationId) &&
    !differs(one.sourceId, other.sourceId) &&
    !differs(one.reason, other.reason) &&
    !differs(one.messageId, other.messageId)
  )
}

function differs(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other
}

function isSelected(record: SourceRecord, selection: Selection, messageId: string | undefined): boolean {
  if (!isInTime(selection, record.timestampMs)) return false
  if (selection.from === 'dead-letters')
    return isSelectedLetter(selection, (name) => headerText(record.headers, name))
  const { sourceId, messageId: wanted } = selection
  return (
    (sourceId === undefined || sourceId === sourceIdOf(record.headers)) &&
    (wanted === undefined || wanted === messageId)
  )
}
