import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { listOf, recordOf } from '../../src/catalog/plain-data.ts'
import { Definitions } from '../../src/catalog-log/definitions.ts'
import type { CatalogDesk } from '../../src/catalog-log/desk.ts'
import type { Edit } from '../../src/catalog-log/judge.ts'
import { type CatalogKeys, newKeyLine } from '../../src/catalog-log/keys.ts'
import { RecordSeals } from '../../src/catalog-log/record.ts'
import { readSealedExport } from '../../src/catalog-log/sealed-file.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { type BreakableWay, openBreakableWay } from '../support/breakable-way.ts'
import { startCloudKafka } from '../support/cloud-kafka.ts'
import { catalogKeys, openDesk } from '../support/catalog-log.ts'
import {
  CatalogModel,
  contentOf,
  countCompacted,
  type Outcome,
  readHistory,
  shopEdit,
  type Writer,
} from '../support/catalog-model.ts'
import { takeEarlierVersion } from '../support/earlier-version.ts'
import { createTopic, otherProgram, testKafka } from '../support/kafka.ts'
import { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'

/** The short form, with writers that are fenced at every step, is `integration/catalog-log/model.test.ts`. */

const minutes = Number(process.env['SLUICE_TEST_CATALOG_MINUTES'] ?? 3)
const seed = Number(process.env['SLUICE_TEST_CATALOG_SEED'] ?? 1)
/** A version that knows the history and tokens, but no lineages, no logins and no links. */
const earlierVersion = '2769a9048edc1a35f406bccf2052794fd6fc28b4'
/** The changes that a writer makes before it looks again. */
const together = 5

/** A `sluice admin` that is killed, started again, and reached by a way that breaks. */
type Admin = {
  readonly program: string | undefined
  readonly variables: Record<string, string>
  running: SluiceProcess
  way: BreakableWay
}

type Fleet = {
  readonly scene: Scene
  readonly tokens: AdminTokens
  readonly topic: string
  readonly keys: CatalogKeys
  readonly random: Random
  readonly admins: Admin[]
  /** Those that only read, with their state folders. */
  readonly followers: readonly { readonly running: SluiceProcess; readonly folder: string }[]
  /** The desk of the test itself, which looks at the topic, and changes nothing until the end. */
  readonly desk: CatalogDesk
  /** The statuses that the API may not answer. */
  readonly odd: string[]
  /** The addresses by which the test itself reaches Kafka. */
  readonly brokers: readonly string[]
}

type FleetOptions = {
  /** The addresses of Kafka for the test and for those that only read. */
  readonly brokers?: readonly string[]
  /** The addresses of Kafka for the admins, if these are others. */
  readonly ofAdmins?: readonly string[]
  readonly hasEarlierVersion?: boolean
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-model-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

async function openFleet({
  brokers = testKafka(),
  ofAdmins = brokers,
  hasEarlierVersion = true,
}: FleetOptions = {}): Promise<Fleet> {
  const keysFile = join(newFolder(), 'keys')
  writeFileSync(keysFile, newKeyLine())
  const tokens = await makeTokens()
  onTestFinished(() => tokens.remove())
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    brokers,
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_CATALOG_SOURCE: 'topic',
      // The topic is compacted sooner than Sluice wants it.
      SLUICE_TOPICS_CHECK: 'warn',
      SLUICE_CATALOG_KEYS_FILE: keysFile,
    },
  })
  onTestFinished(() => scene.close())
  const topic = `${scene.prefix}catalog`
  await compactSoon(topic, brokers)
  await createTopic(`${topic}-audit`, { brokers })
  const keys = catalogKeys(readFileSync(keysFile, 'utf8').trim())
  const desk = openDesk(topic, keys, refuse, { brokers })
  await desk.change({ edits: [shopEdit], by: 'ann' })
  const ofAdmin = { ...scene.variables, SLUICE_KAFKA_BROKERS: ofAdmins.join(',') }
  const admins: Admin[] = []
  for (const program of [undefined, undefined, ...(hasEarlierVersion ? [await earlierProgram()] : [])]) {
    const variables = { ...ofAdmin, SLUICE_STATE_FOLDER: newFolder() }
    admins.push({ program, variables, ...(await startAdmin(variables, program)) })
  }
  const followers = []
  for (const role of ['worker', 'gateway']) {
    const folder = newFolder()
    const running = await startSluice({ ...scene.variables, SLUICE_STATE_FOLDER: folder }, { role })
    onTestFinished(() => running.kill())
    followers.push({ running, folder })
  }
  const random = new Random(seed)
  return { scene, tokens, topic, keys, random, admins, followers, desk, odd: [], brokers }
}

function refuse({ problem }: { readonly problem: string }): never {
  throw new Error(problem)
}

async function earlierProgram(): Promise<string> {
  const earlier = await takeEarlierVersion(earlierVersion)
  onTestFinished(() => earlier.remove())
  return earlier.program
}

async function startAdmin(
  variables: Admin['variables'],
  program: string | undefined,
): Promise<Pick<Admin, 'running' | 'way'>> {
  const running = await startSluice(variables, {
    role: 'admin',
    // It starts while all others write and are disturbed.
    readyMs: 120_000,
    ...(program !== undefined && { program }),
  })
  onTestFinished(() => running.kill())
  const way = await openBreakableWay(`http://127.0.0.1:${running.adminPort}`)
  onTestFinished(() => way.cut())
  return { running, way }
}

/** Kills an admin, freezes it, or breaks the way to it, one after the other until `untilMs`. */
async function disturb({ admins, random }: Fleet, untilMs: number): Promise<Record<string, number>> {
  const done = { killed: 0, frozen: 0, cut: 0 }
  while (Date.now() < untilMs) {
    await delay(200 + random.below(2_500))
    const admin = random.pick(admins)
    const what = random.pick(['killed', 'frozen', 'cut', 'cut'] as const)
    done[what]++
    if (what === 'killed') {
      await admin.running.kill()
      await admin.way.cut()
      Object.assign(admin, await startAdmin(admin.variables, admin.program))
    } else if (what === 'frozen') {
      // Others take the pen meanwhile. When it wakes up, it goes on as if it still had it.
      process.kill(admin.running.pid, 'SIGSTOP')
      await delay(500 + random.below(3_000))
      process.kill(admin.running.pid, 'SIGCONT')
    } else {
      await admin.way.cut()
      await admin.way.mend()
    }
  }
  return done
}

/** Changes destinations until `untilMs`, each time by any of the admins. */
async function write(fleet: Fleet, model: CatalogModel, untilMs: number): Promise<void> {
  const { random, desk } = fleet
  const name = `w${random.below(1_000_000)}`
  for (let part = 0; Date.now() < untilMs; part++) {
    model.see((await desk.look()).objects)
    await model.work(overHttp(fleet, random.pick(fleet.admins)), `${name}-${part}`, together)
  }
}

/** Every eighth answer is lost, because the client doesn't wait for it. */
function overHttp({ tokens, random, odd }: Fleet, admin: Admin): Writer {
  return {
    async change(edit) {
      const lost = random.oneIn(8) ? { signal: AbortSignal.timeout(1 + random.below(60)) } : {}
      try {
        const url = `${admin.way.url}/v1/destinations/${edit.name.id}`
        const answered = await fetch(url, { ...requestOf(edit, tokens.admin), ...lost })
        const outcome = outcomeOf(answered.status, recordOf(await answered.json()))
        if (outcome.kind === 'refused' && !expectedRefusals.has(outcome.why)) odd.push(outcome.why)
        return outcome
      } catch {
        // It may have been killed. The next one is there in a moment.
        await delay(50)
        return { kind: 'unknown' }
      }
    },
  }
}

/** Somebody else was first: the version is outdated, or the destination is gone. */
const expectedRefusals: ReadonlySet<string> = new Set(['404', '412'])

/** The API needs a condition. Who has none says that the object is new. */
function requestOf(edit: Edit, token: string): RequestInit {
  const { base = 'none' } = edit
  const authorization = `Bearer ${token}`
  // A removal has to name a version. No object has this one.
  if (edit.op !== 'put')
    return {
      method: 'DELETE',
      headers: { authorization, 'if-match': base === 'none' ? '"0"' : `"${base}"` },
    }
  const condition = base === 'none' ? { 'if-none-match': '*' } : { 'if-match': `"${base}"` }
  return {
    method: 'PUT',
    headers: { authorization, 'content-type': 'application/json', ...condition },
    body: JSON.stringify(edit.given),
  }
}

function outcomeOf(status: number, { revision, version }: Readonly<Record<string, unknown>>): Outcome {
  if (status === 200)
    return {
      kind: 'made',
      revision: Number(revision),
      version: version === null ? undefined : Number(version),
    }
  // The answer 503 may come to a change that was made.
  return status === 503 ? { kind: 'unknown' } : { kind: 'refused', why: String(status) }
}

/** Lets Kafka compact whatever is older than ten seconds: the heads of changes without an answer stay. */
async function compactSoon(topic: string, brokers: readonly string[]): Promise<void> {
  const settings = {
    'cleanup.policy': 'compact',
    'segment.ms': '200',
    'min.cleanable.dirty.ratio': '0.01',
    'min.compaction.lag.ms': '10000',
    'max.compaction.lag.ms': '11000',
  }
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await withAdmin(otherProgram(brokers), (admin) =>
    admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] }),
  )
}

/** Waits until all processes follow the last change, and know the same destinations. */
async function untilAllAgree(
  { admins, followers, tokens }: Fleet,
  revision: number,
  names: readonly string[],
): Promise<void> {
  for (const { running } of [...admins, ...followers])
    await until(
      'the process uses the last change',
      async () => (await running.metric('sluice_catalog_info', { version: `r${revision}` })) === 1,
    )
  for (const { running } of admins) {
    const answered = await fetch(`http://127.0.0.1:${running.adminPort}/v1/destinations`, {
      headers: { authorization: `Bearer ${tokens.read}` },
    })
    const listed = listOf(recordOf(await answered.json())['destinations'])
    expect(listed.map((one) => String(recordOf(one)['name'])).toSorted()).toEqual(names)
  }
  const [worker] = followers
  expect(await worker?.running.metric('sluice_catalog_destinations')).toBe(names.length)
}

/** Waits until the copies on the disks have all that the topic has. */
async function untilCopied(
  { admins, followers, scene, topic, keys }: Fleet,
  content: ReturnType<typeof contentOf>,
): Promise<void> {
  const [seals, definitions] = [new RecordSeals(topic, keys), new Definitions(topic, keys)]
  const ofThisVersion = admins.filter(({ program }) => program === undefined)
  const folders = ofThisVersion.map(({ variables }) => String(variables['SLUICE_STATE_FOLDER']))
  for (const folder of [...folders, ...followers.map((one) => one.folder)])
    await until('the copy on the disk is whole', async () => {
      const args = ['catalog', 'export', '--sealed', '-', '--copy']
      const { stdout } = await runToEnd(args, { ...scene.variables, SLUICE_STATE_FOLDER: folder })
      const read = readSealedExport(stdout, seals, topic)
      if (!read.ok) throw new Error(read.problem)
      expect(contentOf(read.log.objects, definitions)).toEqual(content)
      return true
    })
}

/**
 * Lets the admins work while they are disturbed, and compares what they said with what all readers have. Returns
 * the statuses that they may not answer.
 */
async function runModel(fleet: Fleet): Promise<readonly string[]> {
  const { topic, keys, desk, odd, brokers } = fleet
  const model = new CatalogModel(fleet.random)
  const untilMs = Date.now() + minutes * 60_000
  const [disturbed] = await Promise.all([
    disturb(fleet, untilMs),
    ...Array.from({ length: 3 }, () => write(fleet, model, untilMs)),
  ])

  // What was under way when a process was killed is over: the pen is taken, and nothing comes any more.
  const fresh = openDesk(topic, keys, refuse, { brokers })
  const given = { id: 'shop', name: 'Last' }
  const last = await fresh.change({ edits: [{ name: shopEdit.name, op: 'put', given }], by: 'ann' })
  if (!last.ok) throw new Error(JSON.stringify(last))
  const [seals, definitions] = [new RecordSeals(topic, keys), new Definitions(topic, keys)]
  const expected = model.verify(await readHistory(`${topic}-history`, seals, brokers))
  const newDesk = (): CatalogDesk => openDesk(topic, keys, refuse, { brokers })
  const logs = [await desk.look(), await fresh.look(), await newDesk().look()]
  const content = contentOf(logs[0]?.objects ?? new Map(), definitions)
  for (const log of logs) {
    expect(log.damage).toBeUndefined()
    expect(contentOf(log.objects, definitions)).toEqual(content)
    expect([...log.objects.keys()].toSorted()).toEqual([...expected.keys()].toSorted())
    for (const [key, definition] of expected) expect(log.objects.get(key)?.definition).toEqual(definition)
  }
  const names = [...expected].flatMap(([key, { name }]) =>
    key.startsWith('destination/') ? [String(name)] : [],
  )
  await untilAllAgree(fleet, last.revision, names.toSorted())
  await untilCopied(fleet, content)
  await until(
    'Kafka has compacted the topic, and a new reader sees the same',
    async () => {
      const log = await newDesk().look()
      expect(contentOf(log.objects, definitions)).toEqual(content)
      return (await countCompacted(topic, brokers)) < model.counts.made
    },
    { timeoutMs: 120_000, everyMs: 2_000 },
  )
  expect(model.counts.made).toBeGreaterThan(minutes * 60)
  expect(model.counts.unknown).toBeGreaterThan(0)
  expect(model.counts.refused).toBeGreaterThan(0)
  for (const [what, times] of Object.entries(disturbed)) expect([what, times > 0]).toEqual([what, true])
  process.stderr.write(`seed ${seed}: ${JSON.stringify({ ...model.counts, ...disturbed })}\n`)
  return odd
}

const longestMs = minutes * 60_000 + 400_000

test(
  'admins of two versions that are killed, frozen and cut off at any time lose no change, make none that they refused, and never lie about a version',
  async () => {
    expect(await runModel(await openFleet())).toEqual([])
  },
  longestMs,
)

/** The requests by which a change is written: Produce, InitProducerId, AddPartitionsToTxn and EndTxn. */
const writing = [0, 22, 24, 26]
/** One of so many answers is lost. A change has five of them. */
const oneLost = 25

test(
  'admins whose answers of Kafka are lost after Kafka has done what was asked do so neither',
  async () => {
    const cloud = await startCloudKafka()
    onTestFinished(() => cloud.stop())
    const fleet = await openFleet({
      brokers: [cloud.direct],
      ofAdmins: [cloud.address],
      hasEarlierVersion: false,
    })
    const random = new Random(seed)
    const lost = new Map(writing.map((apiKey) => [apiKey, 0]))
    cloud.manners.loses = ({ apiKey }) => {
      if (!lost.has(apiKey) || !random.oneIn(oneLost)) return undefined
      lost.set(apiKey, (lost.get(apiKey) ?? 0) + 1)
      return random.pick(['cut', 'half'] as const)
    }
    expect(await runModel(fleet)).toEqual([])
    expect([...lost.values()].every((times) => times > 0)).toBe(true)
    process.stderr.write(`lost: ${JSON.stringify([...lost])}\n`)
  },
  longestMs,
)
