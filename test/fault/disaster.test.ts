import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { ensureJars } from '../../src/development/jars.ts'
import { encodeCommitMetadata } from '../../src/kafka/wire/commit-metadata.ts'
import { testKafka } from '../support/kafka.ts'
import { openShop, type Shop, troubleOf } from '../support/shop.ts'
import { until } from '../support/until.ts'
import { runSluice } from '../support/worker-process.ts'
import { writeCommit } from '../support/write-commit.ts'

/**
 * Tests of what docs/operations.md says about lost commits, and about a cluster that mirrors another cluster.
 */

const partition = 2
const root = resolve(import.meta.dirname, '../..')

/** A version of Kafka whose jars contain the command-line tools. */
const withTools = '3.3.2'

/** Runs `kafka-consumer-groups.sh`, which the page uses, and returns its output. */
async function consumerGroups(...args: readonly string[]): Promise<string> {
  const jars = await ensureJars(() => undefined, withTools)
  const tool = ['-XX:TieredStopAtLevel=1', '-cp', `${jars}/*`, 'kafka.admin.ConsumerGroupCommand']
  const { stdout } = await promisify(execFile)('java', [
    ...tool,
    '--bootstrap-server',
    testKafka().join(','),
    ...args,
  ])
  return stdout
}

/**
 * Returns the first block of commands after a heading of the page. `times` replace the times in the block, in
 * order.
 */
function commandsOf(heading: string, times: readonly Date[]): string {
  const page = readFileSync(resolve(root, 'docs/operations.md'), 'utf8')
  const [, block = ''] = /^```\n([^]*?)^```$/m.exec(page.slice(page.indexOf(heading))) ?? []
  const left = [...times]
  return block.replaceAll(/--to-datetime \S+/g, () => `--to-datetime ${left.shift()?.toISOString()}`)
}

/**
 * Runs lines in a shell that has the commands of the page on its PATH, and the environment variables of a
 * worker.
 */
async function runLines(shop: Shop, lines: string): Promise<void> {
  const commands = mkdtempSync(join(tmpdir(), 'sluice-commands-'))
  onTestFinished(() => rmSync(commands, { recursive: true, force: true }))
  const jars = await ensureJars(() => undefined, withTools)
  for (const [name, command] of [
    ['sluice', `${process.execPath} ${resolve(root, 'src/main.ts')}`],
    [
      'kafka-consumer-groups.sh',
      `java -XX:TieredStopAtLevel=1 -cp '${jars}/*' kafka.admin.ConsumerGroupCommand`,
    ],
  ] as const)
    writeFileSync(join(commands, name), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 })
  const here = lines
    .replaceAll('BROKER', testKafka().join(','))
    .replaceAll('--group sluice', `--group ${groupOf(shop)}`)
  await promisify(execFile)('sh', ['-euc', here], {
    env: { ...process.env, ...shop.scene.variables, PATH: `${commands}:${process.env['PATH']}` },
  })
}

function groupOf(shop: Shop): string {
  return String(shop.scene.variables['SLUICE_KAFKA_GROUP_ID'])
}

/**
 * Grows the topics to 16 partitions, which makes their second generation. Adapts the settings of the scene.
 */
async function grow({ scene }: Shop): Promise<void> {
  await runSluice(['topics', 'grow', '16'], scene.variables)
  Object.assign(scene.variables, { SLUICE_TOPICS_PARTITIONS: '16', SLUICE_TOPICS_GENERATION: '2' })
}

/** Delivers 20 messages, stops the worker, and writes 20 more. `since` is a moment between the two. */
async function deliverThenWrite(
  shop: Shop,
): Promise<{ delivered: string[]; since: Date; written: string[] }> {
  const worker = await shop.start()
  const delivered = await shop.send(partition, 20)
  await shop.untilArrived(delivered)
  await worker.terminate()
  // Append times have a precision of milliseconds. So the messages after this wait have later append times
  // than those before it.
  const since = new Date(Date.now() + 1)
  await until('the clock has gone on', () => Date.now() > since.getTime())
  return { delivered, since, written: await shop.send(partition, 20) }
}

async function timesOf(shop: Shop, ids: readonly string[]): Promise<Set<number>> {
  const arrivals = await shop.receiver.arrivals(shop.path)
  return new Set(ids.map((id) => arrivals.get(id)?.length ?? 0))
}

test.each([
  { generation: 1, prefix: '' },
  { generation: 2, prefix: 'g2.' },
])(
  'a group whose commits are lost goes on from the time that it is set to: what came before is not repeated (generation $generation)',
  async ({ generation, prefix }) => {
    const shop = await openShop()
    if (generation > 1) await grow(shop)
    const { delivered, since, written } = await deliverThenWrite(shop)
    await consumerGroups('--delete', '--group', groupOf(shop))
    const earlier = new Date(since.getTime() - 2 * 3_600_000)
    await runLines(
      shop,
      commandsOf("**The cluster is back, the group's offsets are gone.**", [since, earlier]),
    )
    const committed = await consumerGroups('--describe', '--group', groupOf(shop))
    const names = [
      'events',
      'deletions',
      'audience-changes',
      ...['memberships', 'replays', 'retry.1s'].map((name) => `${prefix}${name}`),
    ]
    const topics = new Set([...committed.matchAll(/^\S+ +(\S+) +\d+ +\d+ /gm)].map(([, topic]) => topic))
    expect(topics).toEqual(new Set(names.map((name) => shop.topic(name))))
    const worker = await shop.start()
    await shop.untilArrived(written)
    await until('all is settled', async () => (await worker.metric('sluice_consumer_lag_records')) === 0)
    expect(await timesOf(shop, delivered)).toEqual(new Set([1]))
    expect(await timesOf(shop, written)).toEqual(new Set([1]))
    expect(troubleOf(worker, { topic: shop.topic('events') })).toEqual([])
  },
)

test('one that is not set delivers all that the topics have once more', async () => {
  const shop = await openShop()
  const { delivered, written } = await deliverThenWrite(shop)
  await consumerGroups('--delete', '--group', groupOf(shop))
  await shop.start()
  await shop.untilArrived(written)
  await until('the first ones came again', async () => (await timesOf(shop, delivered)).has(2))
  expect(await timesOf(shop, written)).toEqual(new Set([1]))
})

test('a commit that a mirror has copied with what it remembers is of another log: nothing is passed over, all comes again, and it is told', async () => {
  const shop = await openShop()
  const { delivered, written } = await deliverThenWrite(shop)
  // This metadata holds offsets of the other cluster. It says that the last ten records, which lie above the
  // committed offset, were settled.
  const metadata = encodeCommitMetadata(
    20,
    Array.from({ length: 10 }, (_, nth) => 30 + nth),
    { isFinal: true, epoch: 7, topicId: 'AAAAAAAAAAAAAAAAAAAAAA' },
  )
  const events = { groupId: groupOf(shop), topic: shop.topic('events'), partition }
  // MirrorMaker writes such a commit. The group has no members on this cluster.
  await writeCommit({ ...events, offset: 20, metadata })
  const worker = await shop.start()
  await shop.untilArrived(written)
  await until('the first ones came again', async () => (await timesOf(shop, delivered)).has(2))
  expect(await worker.metric('sluice_truncations_total', { topic: 'events' })).toBe(1)
})
