import { expect } from 'vitest'
import { SharedBreath } from '../../../src/async/shared-breath.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { QueuePartition } from '../../../src/waiting/mark-writer.ts'
import { Owners, type QueueClass } from '../../../src/waiting/owners.ts'
import { Pieces } from '../../../src/waiting/pieces.ts'
import type { UnitQueueOptions } from '../../../src/waiting/queue-options.ts'
import { UnitQueue } from '../../../src/waiting/unit-queue.ts'
import { until } from '../../support/until.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { quietLog } from '../../support/emitted-lines.ts'

/** An owner of a unit's queues, without a group. */
export type Owner = {
  readonly queue: UnitQueue
  readonly owners: Owners
  /** The messages that were taken out of the queue, with the records that are to be settled. */
  readonly taken: { readonly id: string; readonly record: HeldRecord }[]
  /** The messages that have waited for too long. */
  readonly expired: Owner['taken']
  /** The messages that were given up. */
  readonly dropped: Owner['taken']
  readonly lost: number[]
  /** The offsets at which the log was found to be another one. */
  readonly truncatedAt: number[]
  /** The offsets from which on the log was found to have other records at the beginning of the tenure. */
  readonly otherFrom: number[]
  /**
   * The number of records that are taken and whose end isn't written. Until the last look at the log, the
   * queue itself counts as one.
   */
  lent(): number
  append(destinationId: string, id: string, queueClass?: QueueClass): Promise<unknown>
  /** Appends a new message of `a`, which is made from the record of `events` at an offset. */
  appendNew(offset: number): Promise<unknown>
  /** Begins `events`. */
  begin(): void
  /** Loses the unit to another member. */
  lose(): void
  /** Takes a message of a destination, and returns its id. */
  next(destinationId: string, queueClass?: QueueClass): Promise<string>
  /** Takes messages of a destination until none waits, and settles them. Returns their ids. */
  drain(destinationId: string, queueClass?: QueueClass): Promise<string[]>
}

export type QueueTopics = { readonly topic: string; readonly marksTopic: string }

export type OwnerSettings = {
  readonly maxAgeMs?: number
  readonly unit?: number
  readonly log?: UnitQueueOptions['log']
  /** False if the owner's first commit of `waiting` isn't made. */
  readonly hasBegun?: boolean
  /** Called with the queue before its log is read. */
  readonly beforeLoad?: (queue: UnitQueue) => void
}

/** Creates the topics `waiting` and `waiting-marks` of a new installation. */
export async function createQueueTopics(partitions = 1): Promise<QueueTopics> {
  const prefix = randomPrefix()
  const [topic, marksTopic] = [`${prefix}waiting`, `${prefix}waiting-marks`]
  await createTopic(topic, { partitions })
  await createTopic(marksTopic, { partitions, settings: { 'cleanup.policy': 'compact' } })
  return { topic, marksTopic }
}

/** Returns a partition of the topic `waiting` that is assigned to this owner. */
export function partitionOf(
  found: Partial<QueuePartition['found']>,
  calls: Pick<QueuePartition, 'lend' | 'giveBack' | 'isOtherFrom' | 'isOtherLog'>,
  hasBegun = true,
): QueuePartition & { lose(): void } {
  let committedOffset = 0
  let isLost = false
  return {
    found: { offset: -1, isForeign: false, topicId: undefined, epoch: 0, otherFrom: Infinity, ...found },
    get isBegun() {
      return hasBegun && !isLost
    },
    get isLost() {
      return isLost
    },
    lose: () => void (isLost = true),
    isElsewhere: false,
    begunBelow: 0,
    get committedOffset() {
      return committedOffset
    },
    moveTo: (offset) => void (committedOffset = Math.max(committedOffset, offset)),
    ...calls,
  }
}

/** Begins a tenure. `found` is what the commit of the previous owner says. */
export async function openOwner(
  { reader, producer }: Pick<UnitQueueOptions, 'reader' | 'producer'>,
  of: QueueTopics,
  found: Partial<QueuePartition['found']> = {},
  { maxAgeMs = Infinity, unit = 0, log = quietLog, hasBegun, beforeLoad }: OwnerSettings = {},
): Promise<Owner> {
  let lent = 0
  const taken: Owner['taken'][number][] = []
  const expired: Owner['taken'][number][] = []
  const dropped: Owner['taken'][number][] = []
  const lost: number[] = []
  const truncatedAt: number[] = []
  const otherFrom: number[] = []
  const owners = new Owners()
  const calls = {
    lend: () => void lent++,
    giveBack: () => void lent--,
    isOtherFrom: (from: number) => void otherFrom.push(from),
    isOtherLog: ({ at }: { at: number }) => void truncatedAt.push(at),
  }
  const partition = partitionOf(found, calls, hasBegun)
  const queue = new UnitQueue({
    ...of,
    unit,
    reader,
    producer,
    owners,
    pieces: new Pieces(1024 ** 2),
    handing: new SharedBreath(5),
    partition,
    take: (record, { value }) => taken.push({ id: String(value), record }),
    expire: (record, { value }) => expired.push({ id: String(value), record }),
    drop: (record, { value }) => dropped.push({ id: String(value), record }),
    maxAgeMs: () => maxAgeMs,
    onWaiting: () => undefined,
    onLost: (count) => lost.push(count),
    log,
  })
  beforeLoad?.(queue)
  await queue.load()
  async function next(destinationId: string, queueClass: QueueClass = 'fresh'): Promise<string> {
    const before = taken.length
    expect(queue.pull(owners.codeOf(destinationId, queueClass), 1)).toBe(1)
    return (await until('it is read', () => taken[before])).id
  }
  const append = (id: string, headers: Record<string, string>, code: number) =>
    queue.append({ key: null, value: Buffer.from(id), headers }, code)
  return {
    queue,
    owners,
    taken,
    expired,
    dropped,
    lost,
    truncatedAt,
    otherFrom,
    lent: () => lent,
    next,
    append: (destinationId, id, queueClass = 'fresh') =>
      append(id, { 'destination-id': destinationId }, owners.codeOf(destinationId, queueClass)),
    appendNew: (offset) => append(`m${offset}`, newHeaders(offset, unit), owners.codeOf('a', 'fresh')),
    begin: () => queue.begin('events'),
    lose: () => partition.lose(),
    async drain(destinationId, queueClass = 'fresh') {
      const ids: string[] = []
      while (queue.untakenOf(owners.codeOf(destinationId, queueClass)) > 0) {
        ids.push(await next(destinationId, queueClass))
        taken.at(-1)?.record.settle()
      }
      return ids
    },
  }
}

/** The message that is made for `a` from the record of `events` at an offset. */
export function newMessage(offset: number, unit = 0) {
  const source = { topic: 'events', partition: unit, offset }
  return { destinationId: 'a', messageId: `m${offset}`, source }
}

function newHeaders(offset: number, unit: number): Record<string, string> {
  return { 'destination-id': 'a', 'message-id': `m${offset}`, origin: `events/${unit}/${offset}` }
}
