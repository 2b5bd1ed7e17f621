import { setTimeout as passTime } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { partitionOf } from '../../src/message/partitioner.ts'
import type { AudienceCustomer } from './audience-customer.ts'
import { audiences, propertyOf, traits, users } from './audience-names.ts'
import type { Random } from './random.ts'
import { until } from './until.ts'

/**
 * The values of computed traits. Two of them differ only in the order of their fields. A change from one of
 * these two to the other doesn't count as a change.
 */
const traitValues: readonly unknown[] = [
  'null',
  '0',
  '-1.5',
  '1e21',
  '""',
  '"gold"',
  'true',
  'false',
  '[]',
  '{}',
  '[1,[null,"é"]]',
  '{"a":1,"b":{"c":[]}}',
  '{"b":{"c":[]},"a":1}',
  '{"__proto__":{"x":1}}',
].map((text): unknown => JSON.parse(text))

export type WrongValue = { user: string; property: string; value: unknown; has: unknown }

type Desired = { atMs: number; value: unknown }
type Change = { user: string; name: string; value: unknown; atMs: number }

export type UpstreamOptions = {
  /**
   * Returns the number of partitions of each topic. The upstream calls it again for each use, because an
   * installation may grow.
   */
  partitions: () => number
  random: Random
  /**
   * Returns how long ago the customers got the user's `delete` for this time, in milliseconds. Returns
   * `undefined` while a customer hasn't got it.
   */
  msSinceDelete: (user: string, atMs: number) => number | undefined
  /**
   * Writes records to a topic. The topic is named without its prefix. Resolves when Kafka has acknowledged.
   */
  send: (topic: 'audience-changes' | 'deletions', records: readonly UpstreamRecord[]) => Promise<void>
  /** The longest wait for the outstanding `delete`s at the end, in milliseconds. */
  deletedWithinMs?: number
}

/** A record of the space `space`. Without `partition`, the record's key decides the partition. */
export type UpstreamRecord = { key: string | null; value: string; partition?: number }

/**
 * Creates an upstream that writes changes, syncs and deletions. Changes come late, twice and out of order.
 * Some syncs lack one of their two parts. While a deletion of a user is under way, the upstream requests no
 * second deletion of the user. When `msSinceDelete` reports that the `delete` has come, the upstream also
 * writes changes of the user that aren't newer than the deletion.
 */
export function createAudienceUpstream({
  partitions,
  random,
  msSinceDelete,
  send,
  deletedWithinMs = 60_000,
}: UpstreamOptions) {
  const desired = new Map<string, Desired>()
  /**
   * By user, the time of the deletion request, in epoch milliseconds. Holds only users whose `delete` has not
   * come yet.
   */
  const deleting = new Map<string, number>()
  let written = 0
  let syncs = 0
  let deletions = 0
  let lastMs = 0

  /**
   * Returns the present time, in epoch milliseconds. Never returns the same time twice. So no two changes,
   * syncs or deletions have the same time.
   */
  function now(): number {
    lastMs = Math.max(Date.now(), lastMs + 1)
    return lastMs
  }

  function want(user: string, name: string, next: Desired): void {
    const key = `${user}\n${name}`
    const held = desired.get(key)
    if (held === undefined || next.atMs > held.atMs) desired.set(key, next)
  }

  function newChange(user: string, atMs: number): Change {
    return random.oneIn(3)
      ? { user, name: random.pick(traits), value: random.pick(traitValues), atMs }
      : { user, name: random.pick(audiences), value: random.oneIn(2), atMs }
  }

  async function change(): Promise<void> {
    const changes = Array.from({ length: 1 + random.below(8) }, () => newChange(random.pick(users), now()))
    for (const { user, name, value, atMs } of changes) want(user, name, { atMs, value })
    const order = changes.toSorted(() => random.below(3) - 1)
    const repeated = random.oneIn(3) ? order.slice(0, 2) : []
    await sendChanges([...order, ...repeated])
    written += order.length
  }

  async function sendChanges(changes: readonly Change[]): Promise<void> {
    await send(
      'audience-changes',
      changes.map(({ user, name, value, atMs }) => ({
        key: user,
        ...(random.oneIn(10) && { partition: random.below(partitions()) }),
        value: JSON.stringify({
          ...(traits.some((trait) => trait === name)
            ? { type: 'trait', traitId: name, traitName: name, value }
            : { type: 'membership', audienceId: name, audienceName: name, audienceKey: null, member: value }),
          userId: user,
          changedAt: new Date(atMs).toISOString(),
        }),
      })),
    )
  }

  async function requestDeletion(): Promise<void> {
    const user = random.pick(users)
    if (deleting.has(user)) return
    const atMs = now()
    deleting.set(user, atMs)
    for (const name of [...audiences, ...traits]) desired.delete(`${user}\n${name}`)
    const requestedAt = new Date(atMs).toISOString()
    const request = { requestId: `request-${atMs}`, userId: user, sources: ['space'], requestedAt }
    await send('deletions', [{ key: user, value: JSON.stringify(request) }])
    deletions++
  }

  /**
   * Ends each deletion whose `delete` message has reached the receiver. Then sends changes of the deleted user
   * that aren't newer than the deletion, as an upstream service that is late would.
   */
  async function endDeletions(): Promise<void> {
    for (const [user, atMs] of deleting) {
      const sinceMs = msSinceDelete(user, atMs)
      if (sinceMs === undefined) continue
      deleting.delete(user)
      const late = Array.from({ length: 1 + random.below(4) }, () =>
        newChange(user, atMs - random.below(10_000)),
      )
      await sendChanges(late)
    }
  }

  async function sync(audience: string, isWhole: boolean): Promise<void> {
    const atMs = now()
    const members = new Set(users.filter(() => random.oneIn(2)))
    const parts = isWhole ? 1 : 2
    const count = partitions()
    await send(
      'audience-changes',
      Array.from({ length: count }, (_, partition) => ({
        key: null,
        partition,
        value: JSON.stringify({
          type: 'sync',
          audienceId: audience,
          audienceName: audience,
          syncId: `sync-${atMs}`,
          snapshotAt: new Date(atMs).toISOString(),
          part: 1,
          parts,
          userIds: [...members].filter((user) => partitionOf(user, count) === partition),
        }),
      })),
    )
    if (!isWhole) return
    syncs++
    for (const user of users) {
      const isKnown = desired.has(`${user}\n${audience}`)
      // The value after this depends on whether Sluice reads the sync or the deletion first. So no
      // value is expected.
      if (deleting.has(user)) {
        desired.delete(`${user}\n${audience}`)
        continue
      }
      if (isKnown || members.has(user)) want(user, audience, { atMs, value: members.has(user) })
    }
  }

  /**
   * Writes changes and deletions, and syncs if wanted, until `untilMs` (a time of `performance.now()`).
   * Doesn't wait for any `delete`.
   */
  async function write(untilMs: number, { withSyncs }: { withSyncs: boolean }): Promise<void> {
    while (performance.now() < untilMs) {
      await change()
      if (withSyncs && random.oneIn(30)) await sync(random.pick(audiences), random.below(3) > 0)
      if (random.oneIn(15)) await requestDeletion()
      await endDeletions()
      await passTime(random.below(400))
    }
  }

  /**
   * Waits until every `delete` has come, and sends a whole sync of each audience. After this, every expected
   * value is known.
   */
  async function end(): Promise<void> {
    await until(
      'every delete has come',
      async () => {
        await endDeletions()
        return deleting.size === 0
      },
      { timeoutMs: deletedWithinMs, everyMs: 200 },
    )
    // A newer whole sync of an audience also ends a sync of which only one part has come.
    for (const audience of audiences) await sync(audience, true)
  }

  function wanted(): (readonly [user: string, property: string, value: unknown])[] {
    return [...desired].map(([key, { value }]) => {
      const [user = '', name = ''] = key.split('\n')
      return [user, propertyOf(name), value] as const
    })
  }

  return {
    get written() {
      return written
    },
    get syncs() {
      return syncs
    },
    get deletions() {
      return deletions
    },
    write,
    sync,
    async play(untilMs: number): Promise<void> {
      await write(untilMs, { withSyncs: true })
      await end()
    },
    /** Returns each user and property for which the customer has another value than the expected one. */
    wrongAt({ valueOf }: Pick<AudienceCustomer, 'valueOf'>): WrongValue[] {
      return wanted()
        .map(([user, property, value]) => ({ user, property, value, has: valueOf(user, property) }))
        .filter(({ value, has }) => !isDeepStrictEqual(has, value))
    },
  }
}
