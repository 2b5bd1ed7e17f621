import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as fc from 'fast-check'
import { Partitioners } from 'kafkajs'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { giveInput } from '../../../scripts/give-input.ts'
import { ensureJars } from '../../../src/development/jars.ts'
import { readChange } from '../../../src/audience/records/change-record.ts'
import { audienceChangeSchema, syncPartCheck } from '../../../src/message/audience-change.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { createTopic, randomPrefix, readAll, type SeenRecord, testKafka } from '../../support/kafka.ts'
import { pythonPackage } from '../../support/python-packages.ts'

/**
 * Tests of producers in other languages. They run the programs of docs/producing-audience-changes.md as the
 * page shows them. Each program must write the changes of a user to the unit in which the worker keeps the
 * states of this user.
 */

const root = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/producing-audience-changes.md'), 'utf8')
const pythonRequirement = 'confluent-kafka==2.16.1'
const mostInstallMs = 5 * 60_000
const mostRunMs = 60_000
const partitions = 12

/** Returns those code blocks of the page that are in the given programming language. */
function blocksOf(language: string): readonly string[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, name, text]) =>
    name === language && text !== undefined ? [text] : [],
  )
}

function blockOf(language: string, marker: string): string {
  const block = blocksOf(language).find((text) => text.includes(marker))
  if (block === undefined) throw new Error(`the page has no ${language} example with ${marker}`)
  return block
}

/**
 * A thousand user ids, one for each line of the input. They include names in many scripts, and ids of the
 * greatest allowed length.
 */
const userIds: readonly string[] = (() => {
  const spoken = fc.sample(
    fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((id) => id.isWellFormed() && !/[\p{Cc}\u2028\u2029\ufeff\ufffd]/u.test(id)),
    { numRuns: 1_500, seed: 17 },
  )
  const given = [
    'u1',
    '42',
    'ada@example.com',
    'Zoë',
    'Zoe\u0308',
    'ユーザー',
    '👩‍🚀',
    ' a ',
    'x'.repeat(1_000),
    '漢'.repeat(1_000),
  ]
  const plain = fc.sample(fc.uuid(), { numRuns: 300, seed: 17 })
  return [...new Set([...given, ...plain, ...spoken])].slice(0, 1_000)
})()

const folder = mkdtempSync(join(tmpdir(), 'sluice-producers-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/**
 * Runs a program of the page. The brokers and the topic are its arguments, and the users are its standard
 * input.
 */
async function run(
  command: string,
  args: readonly string[],
  {
    topic,
    env = {},
    input = `${userIds.join('\n')}\n`,
  }: { topic: string; env?: Record<string, string>; input?: string },
): Promise<void> {
  const child = spawn(command, [...args, testKafka().join(','), topic], {
    cwd: root,
    env: { ...process.env, ...env },
    timeout: mostRunMs,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  giveInput(child, input)
  const [code]: unknown[] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}:\n${stderr}`)
  expect(stderr).not.toContain('not sent')
}

function fileOf(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

type Client = { name: string; run: (topic: string) => Promise<void> }

let jars = ''
let packages = ''

const clients: readonly Client[] = [
  {
    name: 'Java’s own client',
    run: (topic) => {
      const file = fileOf('EnterAudience.java', blockOf('java', 'class EnterAudience'))
      return run('java', ['-cp', join(jars, '*'), file], { topic })
    },
  },
  {
    name: 'librdkafka, by confluent-kafka',
    run: (topic) => {
      const file = fileOf('enter_audience.py', blockOf('python', 'enter_audience.py'))
      return run('python3', [file], { topic, env: { PYTHONPATH: packages } })
    },
  },
  {
    name: 'kafkajs',
    run: (topic) =>
      run(process.execPath, ['--input-type=module', '-e', blockOf('js', 'kafkajs'), '--'], { topic }),
  },
]

beforeAll(async () => {
  jars = await ensureJars(() => undefined)
  packages = await pythonPackage(pythonRequirement)
}, mostInstallMs)

async function newTopic(): Promise<string> {
  const topic = `${randomPrefix()}audience-changes`
  await createTopic(topic, { partitions })
  return topic
}

const check = Compile(audienceChangeSchema)

/** Reads a record as the worker does. */
const read = ({ partition, offset, value }: Pick<SeenRecord, 'partition' | 'offset' | 'value'>) =>
  readChange(
    value,
    { spaceId: 'personas', partition, offset, timestampMs: Date.now(), origin: undefined },
    { limits: defaultLimits, partitions },
  )

describe('the page', () => {
  test('shows records as the schema has them', () => {
    const examples = blocksOf('json').map((text): unknown => JSON.parse(text))
    expect(examples.map((example) => (check.Check(example) ? [] : check.Errors(example)))).toEqual([
      [],
      [],
      [],
    ])
  })

  test('lists keys with the partitions that they are in', () => {
    const rows = [...page.matchAll(/^\| `(.+?)` *\| (\d+) *\|$/gm)]
    expect(rows).toHaveLength(7)
    for (const [, key = '', partition] of rows) expect(partitionOf(key, 12)).toBe(Number(partition))
  })
})

describe.each(clients)('$name, set as the page says', ({ run: produce }) => {
  test('puts every change of a user in the unit of that user', { timeout: 2 * mostRunMs }, async () => {
    const topic = await newTopic()
    await produce(topic)
    const records = await readAll(topic, { count: userIds.length })
    expect(records.map(({ key }) => key ?? '').toSorted()).toEqual([...userIds].toSorted())
    for (const { partition, offset, key, value, headers } of records) {
      expect(partition).toBe(partitionOf(key ?? '', partitions))
      expect(headers).toEqual({ 'source-id': 'personas' })
      expect(read({ partition, offset, value })).toMatchObject({
        ok: true,
        change: { stateKey: { userId: key, property: 'big_spenders' }, value: 'true', unit: partition },
      })
      const change: unknown = JSON.parse(value?.toString() ?? '')
      expect(check.Check(change)).toBe(true)
      expect(change).toMatchObject({ type: 'membership', userId: key })
    }
  })
})

test('a key that Java writes as null is none', { timeout: 2 * mostRunMs }, async () => {
  const topic = await newTopic()
  const file = fileOf('EnterAudience.java', blockOf('java', 'class EnterAudience'))
  await run('java', ['-cp', join(jars, '*'), file], { topic, input: 'u1\n' })
  const [record] = await readAll(topic, { count: 1 })
  expect(JSON.parse(String(record?.value))).toMatchObject({ userId: 'u1', audienceKey: null })
})

/** Returns the number of records that are not in the unit of their user. */
const elsewhere = (placed: readonly { key: string | null; partition: number }[]): number =>
  placed.filter(({ key, partition }) => partition !== partitionOf(key ?? '', partitions)).length

describe('what the page warns of', () => {
  test('librdkafka’s default puts most users elsewhere', { timeout: 2 * mostRunMs }, async () => {
    const topic = await newTopic()
    const text = blockOf('python', 'enter_audience.py').replace(', "partitioner": "murmur2_random"', '')
    await run('python3', [fileOf('default_partitioner.py', text)], { topic, env: { PYTHONPATH: packages } })
    expect(elsewhere(await readAll(topic, { count: userIds.length }))).toBeGreaterThan(800)
  })

  test('kafkajs’ LegacyPartitioner puts some users elsewhere', () => {
    const place = Partitioners.LegacyPartitioner()
    const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({
      partitionId,
      partitionErrorCode: 0,
      leader: 1,
      replicas: [1],
      isr: [1],
    }))
    const placed = userIds.map((key) => ({
      key,
      partition: place({ topic: 't', partitionMetadata, message: { key, value: '' } }),
    }))
    expect(elsewhere(placed)).toBeGreaterThan(100)
  })
})

describe('the page’s sync', () => {
  test(
    'names each user once, in its own unit, with parts for every partition',
    { timeout: 2 * mostRunMs },
    async () => {
      const topic = await newTopic()
      const file = fileOf(
        'sync_audience.py',
        // With this limit, each partition gets several parts.
        blockOf('python', 'sync_audience.py').replace('users_of_a_part = 10_000', 'users_of_a_part = 50'),
      )
      await run('python3', [file], { topic, env: { PYTHONPATH: packages } })
      const named: string[] = []
      const counts = Array.from({ length: partitions }, () => ({ seen: 0, of: 0 }))
      for (const { partition, key, value, headers } of await readAll(topic)) {
        expect([key, headers]).toEqual([null, { 'source-id': 'personas' }])
        const part: unknown = JSON.parse(value?.toString() ?? '')
        if (!syncPartCheck.Check(part)) throw new Error('not as the schema has it')
        const count = counts[partition]
        expect(part.part).toBe((count?.seen ?? 0) + 1)
        counts[partition] = { seen: part.part, of: part.parts }
        for (const userId of part.userIds) expect(partitionOf(userId, partitions)).toBe(partition)
        named.push(...part.userIds)
      }
      expect(named.toSorted()).toEqual([...userIds].toSorted())
      expect(counts.every(({ seen, of }) => seen > 0 && seen === of)).toBe(true)
      expect(counts.some(({ of }) => of > 1)).toBe(true)
    },
  )

  test('of nobody has an empty part for every partition', { timeout: 2 * mostRunMs }, async () => {
    const topic = await newTopic()
    const file = fileOf('sync_nobody.py', blockOf('python', 'sync_audience.py'))
    await run('python3', [file], { topic, env: { PYTHONPATH: packages }, input: '' })
    const records = await readAll(topic)
    expect(records.map(({ partition }) => partition)).toEqual(counting(partitions))
    for (const { value } of records) {
      expect(JSON.parse(value?.toString() ?? '')).toMatchObject({ part: 1, parts: 1, userIds: [] })
    }
  })

  test('is placed by Java with the method that the page names', { timeout: 2 * mostRunMs }, async () => {
    const [, placing] = /`(Utils\.toPositive\(.+?\) % partitions)`/.exec(page) ?? []
    const topic = await newTopic()
    const file = fileOf(
      'Place.java',
      `import java.io.*; import java.util.*; import org.apache.kafka.clients.producer.*;
       import org.apache.kafka.common.serialization.*; import org.apache.kafka.common.utils.Utils;
       import static java.nio.charset.StandardCharsets.UTF_8;
       public class Place { public static void main(String[] args) throws Exception {
         int partitions = ${partitions};
         Map<String, Object> settings = Map.of("bootstrap.servers", args[0]);
         try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
             var users = new BufferedReader(new InputStreamReader(System.in, UTF_8))) {
           for (String userId = users.readLine(); userId != null; userId = users.readLine())
             producer.send(new ProducerRecord<>(args[1], ${placing}, null, userId));
         } } }`,
    )
    await run('java', ['-cp', join(jars, '*'), file], { topic })
    const records = await readAll(topic, { count: userIds.length })
    for (const { partition, value } of records) {
      expect(partition).toBe(partitionOf(value?.toString() ?? '', partitions))
    }
  })
})

const counting = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
