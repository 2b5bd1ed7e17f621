import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { listOf, recordOf } from '../../src/catalog/plain-data.ts'
import { Definitions } from '../../src/catalog-log/definitions.ts'
import type { Edit } from '../../src/catalog-log/judge.ts'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { RecordSeals } from '../../src/catalog-log/record.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { makeTokens } from '../support/admin.ts'
import { catalogKeys, openDesk } from '../support/catalog-log.ts'
import {
  CatalogModel,
  contentOf,
  type Outcome,
  readHistory,
  shopEdit,
  type Writer,
} from '../support/catalog-model.ts'
import { takeEarlierVersion } from '../support/earlier-version.ts'
import { createTopic, otherProgram, readAll } from '../support/kafka.ts'
import { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

/** The short form is `integration/catalog-log/model.test.ts`. */

const kills = 6
const each = 40
/** A version that knows the topic, and none of the fields that came later. */
const earlierVersion = '5f304da2'

test('admins of two versions that are killed at any time lose no change, make none twice, and never lie about a version', async () => {
  const random = new Random(Number(process.env['SLUICE_TEST_SEED'] ?? 1))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-model-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const keysFile = join(folder, 'keys')
  writeFileSync(keysFile, newKeyLine())
  const tokens = await makeTokens()
  onTestFinished(() => tokens.remove())
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: keysFile,
    },
  })
  onTestFinished(() => scene.close())
  const topic = `${scene.prefix}catalog`
  await compactSoon(topic)
  await createTopic(`${topic}-audit`)
  const keys = catalogKeys(readFileSync(keysFile, 'utf8').trim())
  const [seals, definitions] = [new RecordSeals(topic, keys), new Definitions(topic, keys)]
  const desk = openDesk(topic, keys, ({ problem }) => {
    throw new Error(problem)
  })
  await desk.change({ edits: [shopEdit], by: 'ann' })

  const model = new CatalogModel(random)
  const earlier = await takeEarlierVersion(earlierVersion)
  onTestFinished(() => earlier.remove())
  const programs = [undefined, earlier.program]
  const admins = await Promise.all(programs.map((program) => startAdmin(scene, folder, program)))
  const state = { killed: 0 }
  const killing = (async () => {
    for (; state.killed < kills; state.killed++) {
      await delay(500 + random.below(3_000))
      const index = random.below(admins.length)
      await admins[index]?.kill()
      admins[index] = await startAdmin(scene, folder, programs[index])
    }
  })()
  let writers = 0
  const write = async (index: number): Promise<void> => {
    const writer = overHttp(() => admins[index % admins.length], tokens.admin, random)
    const name = `w${writers++}`
    for (let part = 0; part < each || state.killed < kills; part += 5) {
      model.see((await desk.look()).objects)
      await model.work(writer, `${name}-${part}`, 5)
    }
  }
  await Promise.all([write(0), write(1), write(2), killing])

  // What was under way when a process was killed is over: the pen is taken, and nothing comes any more.
  const fresh = openDesk(topic, keys)
  await fresh.change({
    edits: [{ name: shopEdit.name, op: 'put', given: { id: 'shop', name: 'Last' } }],
    by: 'ann',
  })
  const logs = [await desk.look(), await fresh.look()]
  const expected = model.verify(await readHistory(`${topic}-history`, seals))
  for (const log of logs) {
    expect(log.damage).toBeUndefined()
    expect([...log.objects.keys()].toSorted()).toEqual([...expected.keys()].toSorted())
    for (const [key, definition] of expected) expect(log.objects.get(key)?.definition).toEqual(definition)
  }
  const content = contentOf(logs[0]?.objects ?? new Map(), definitions)
  for (const admin of admins)
    await until('the admins use the same catalog', async () => {
      const answered = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/destinations`, {
        headers: { authorization: `Bearer ${tokens.read}` },
      })
      const listed = listOf(recordOf(await answered.json())['destinations']).map((one) =>
        String(recordOf(one)['name']),
      )
      const names = [...expected].flatMap(([key, { name }]) =>
        key.startsWith('destination/') ? [String(name)] : [],
      )
      expect(listed.toSorted()).toEqual(names.toSorted())
      return true
    })
  await until(
    'Kafka has compacted the topic, and a new reader sees the same',
    async () => {
      const reader = openDesk(topic, keys)
      const log = await reader.look()
      expect(contentOf(log.objects, definitions)).toEqual(content)
      return (await readAll(topic)).length < model.counts.made
    },
    { timeoutMs: 120_000 },
  )
  expect(model.counts.made).toBeGreaterThan(each)
}, 600_000)

async function startAdmin(scene: Scene, folder: string, program: string | undefined): Promise<SluiceProcess> {
  const variables = { ...scene.variables, SLUICE_STATE_FOLDER: join(folder, 'state') }
  const admin = await startSluice(variables, { role: 'admin', ...(program !== undefined && { program }) })
  onTestFinished(() => admin.kill())
  return admin
}

/** Changes destinations by the API. Every sixth answer is lost, because the client doesn't wait for it. */
function overHttp(admin: () => SluiceProcess | undefined, token: string, random: Random): Writer {
  return {
    async change(edit) {
      const lost = random.oneIn(6) ? { signal: AbortSignal.timeout(1 + random.below(60)) } : {}
      try {
        const answered = await fetch(
          `http://127.0.0.1:${admin()?.adminPort}/v1/destinations/${edit.name.id}`,
          {
            ...requestOf(edit, token),
            ...lost,
          },
        )
        return outcomeOf(answered.status, recordOf(await answered.json()))
      } catch {
        return { kind: 'unknown' }
      }
    },
  }
}

/** The API needs a condition. Who has none says that the object is new. */
function requestOf(edit: Edit, token: string): RequestInit {
  const { base = 'none' } = edit
  const condition = base === 'none' ? { 'if-none-match': '*' } : { 'if-match': `"${base}"` }
  const headers = { authorization: `Bearer ${token}`, ...condition }
  if (edit.op !== 'put') return { method: 'DELETE', headers }
  return {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'application/json' },
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
async function compactSoon(topic: string): Promise<void> {
  const settings = {
    'cleanup.policy': 'compact',
    'segment.ms': '200',
    'min.cleanable.dirty.ratio': '0.01',
    'min.compaction.lag.ms': '10000',
    'max.compaction.lag.ms': '11000',
  }
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await withAdmin(otherProgram(), (admin) =>
    admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] }),
  )
}
