import { expect } from 'vitest'
import { parseStateKey } from '../../src/audience/records/state-record.ts'
import { partitionOf } from '../../src/message/partitioner.ts'
import { setScene } from '../e2e/scene.ts'
import { readAll } from './kafka.ts'
import { type Standing, standingOf, tiers } from './stopped-installation.ts'
import { type Ended, runToEnd } from './worker-process.ts'

/** Installations that grow while none of their workers runs. */

const catalog = { sources: [{ id: 'space', kind: 'audiences' }], destinations: [] }
const ladder = { SLUICE_RETRY_LADDER: '1s,2s', SLUICE_RETRY_THEN: '2s' }

export type Installed = Awaited<ReturnType<typeof install>>

/** Creates the topics, the group id and the settings of an installation. Starts no worker. */
export async function install(partitions: number) {
  const scene = await setScene({
    catalog,
    variables: { ...ladder, SLUICE_TOPICS_PARTITIONS: String(partitions) },
  })
  const { prefix, variables } = scene
  const groupId = variables['SLUICE_KAFKA_GROUP_ID'] ?? ''
  const grow = (...args: string[]): Promise<Ended> => runToEnd(['topics', 'grow', ...args], variables)
  return { prefix, groupId, partitions, variables, grow }
}

/** Returns the settings of a layout. */
export const grownTo = (partitions: number, generation = 2) => ({
  SLUICE_TOPICS_PARTITIONS: String(partitions),
  SLUICE_TOPICS_GENERATION: String(generation),
})

/**
 * Starts a growth to 7 partitions and kills it. Repeats this, with a later kill each time, until the growth
 * has begun.
 */
export async function growUntilBegun({ prefix, variables }: Installed): Promise<void> {
  for (let killAfterMs = 1_000; ; killAfterMs += 200) {
    const { code } = await runToEnd(['topics', 'grow', '7'], variables, { killAfterMs })
    expect(code).toBe(null)
    if ((await readAll(`${prefix}backfills`)).length > 0) return
  }
}

const identityOf = ({ key, value, timestamp, isSettled }: Standing): string =>
  JSON.stringify([key, String(value), timestamp, isSettled])

const kindOf = ({ key }: Standing) => parseStateKey(Buffer.from(key ?? ''))?.kind

const properties = (all: readonly Standing[]) => all.filter((record) => kindOf(record) === 'property')

/** Expects that the new topics hold each record of the copied topics once and unchanged. */
export async function expectCopied(prefix: string, groupId: string, from: number, to: number): Promise<void> {
  const before = await standingOf(`${prefix}memberships`, groupId)
  const after = await standingOf(`${prefix}g2.memberships`, groupId)
  expect(properties(after).map(identityOf).sort()).toEqual(properties(before).map(identityOf).sort())
  for (const { key, partition } of properties(after))
    expect(partition).toBe(partitionOf(String(JSON.parse(String(key))[0]), to))
  // The newer state of each property comes after the older state.
  const values = Map.groupBy(properties(after), ({ key }) => key)
  for (const states of values.values())
    expect(states.map(({ value }) => JSON.parse(String(value)).value)).toEqual([1, 2])
  for (const kind of ['deletion', 'sync']) {
    const keys = new Set(before.filter((record) => kindOf(record) === kind).map(({ key }) => key))
    const ofUnits = after
      .filter((record) => kindOf(record) === kind)
      .map(({ key, partition }) => `${partition} ${key}`)
    expect(ofUnits.toSorted()).toEqual(
      [...keys].flatMap((key) => Array.from({ length: to }, (_, unit) => `${unit} ${key}`)).toSorted(),
    )
  }
  for (const name of [...tiers, 'replays']) {
    const waiting = (await standingOf(prefix + name, groupId)).filter(({ isSettled }) => !isSettled)
    const copied = await standingOf(`${prefix}g2.${name}`, groupId)
    expect(waiting.length).toBeGreaterThan(from)
    expect(copied.map(identityOf).sort()).toEqual(waiting.map(identityOf).sort())
    for (const ofUnit of Map.groupBy(copied, ({ partition }) => partition).values())
      expect(ofUnit.map(({ timestamp }) => timestamp)).toEqual(
        ofUnit.map(({ timestamp }) => timestamp).toSorted((a, b) => a - b),
      )
    for (const { partition, headers } of copied)
      if (headers['property'] !== undefined)
        expect(partition).toBe(partitionOf(String(JSON.parse(headers['property'])[0]), to))
  }
}
