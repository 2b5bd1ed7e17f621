import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { expect, onTestFinished, test } from 'vitest'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import { DiskCopy } from '../../../src/catalog-log/disk-copy.ts'
import { type CatalogLog, type ChangeSet, CatalogLog as Log } from '../../../src/catalog-log/log.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import type { WholeRecord, WrittenRecord } from '../../../src/message/records.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

/** Tests of the copy of a catalog on the disk. */

const keys = catalogKeys()
const seals = new RecordSeals('test', keys)
const definitions = new Definitions('test', keys)

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'sluice-copy-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return join(made, 'copy')
}

/** A topic in memory, and its log. Each call of `change` is a change set. */
function newTopic(lineage = 'one') {
  const log = new Log(seals, ({ problem }) => {
    throw new Error(problem)
  })
  let offset = 0
  let revision = 0
  const take = (record: WrittenRecord): ChangeSet | undefined => log.take(wholeOf(record, offset++))
  return {
    log,
    change(put: readonly string[], removed: readonly string[] = [], secret = 'planted-secret') {
      revision++
      const before = { ...log.counts }
      for (const id of put) {
        if (!log.all.has(`destination/${id}`)) before.destination++
        take(seals.write(`destination/${id}`, stored(id, secret), revision))
      }
      for (const id of removed) {
        before.destination--
        take(seals.write(`destination/${id}`, null, revision))
      }
      return take(seals.head({ revision, changeId: 'c', atMs: 1, by: 'ann', counts: before, lineage }))
    },
  }
}

function stored(id: string, sharedSecret: string) {
  const plain = { id, sources: ['shop'], sharedSecret, hooks: [{ url: `https://example.com/${id}` }] }
  return definitions.stored({ kind: 'destination', id }, plain, { earlier: undefined, atMs: 1 })
}

function wholeOf({ key, value, headers = {} }: WrittenRecord, offset: number): WholeRecord {
  return {
    offset,
    key: Buffer.from(String(key)),
    value: value === null ? null : Buffer.from(String(value)),
    headers: {
      revision: Buffer.from(String(headers['revision'])),
      mac: Buffer.from(String(headers['mac'])),
    },
    timestampMs: 0,
  }
}

const none = { since: Infinity, sets: [] }

function changesOf(set: ChangeSet | undefined, since: number) {
  return { since, sets: set === undefined ? [] : [set] }
}

async function copied(copy: DiskCopy): Promise<{ log: CatalogLog; next: number }> {
  const read = await copy.read()
  if (read === undefined || typeof read === 'string') throw new Error(`no copy: ${read}`)
  return { log: read.log, next: read.place.next }
}

test('a copy has what the topic has: versions, signatures, and no secret in clear', async () => {
  const path = folder()
  const copy = new DiskCopy(path, seals)
  expect(await copy.read()).toBeUndefined()
  const topic = newTopic()
  topic.change(['a', 'b', 'c'])
  topic.change(['b'], ['c'])
  await copy.write(topic.log, 'id-1', none)
  const { log, next } = await copied(copy)
  expect(log.all).toEqual(topic.log.all)
  expect(log.head).toEqual(topic.log.head)
  expect(next).toBe(topic.log.next)
  for (const name of readdirSync(path)) expect(readFileSync(join(path, name)).includes('planted')).toBe(false)
})

test('a change writes what it changes, and nothing else', async () => {
  const path = folder()
  const copy = new DiskCopy(path, seals)
  const topic = newTopic()
  topic.change(Array.from({ length: 2_000 }, (_, index) => `d${index}`))
  await copy.write(topic.log, 'id-1', none)
  const sizes = () => readdirSync(path).map((name) => statSync(join(path, name)).size)
  const whole = sizes().reduce((sum, one) => sum + one, 0)
  const set = topic.change(['d7'], ['d8'], 'another-secret')
  await copy.write(topic.log, 'id-1', changesOf(set, 1))
  const grown = sizes().reduce((sum, one) => sum + one, 0) - whole
  expect(grown).toBeLessThan(whole / 20)
  expect((await copied(copy)).log.all).toEqual(topic.log.all)
})

test('a copy that lacks earlier changes, or is of another log, is compared with the whole', async () => {
  const copy = new DiskCopy(folder(), seals)
  const topic = newTopic()
  topic.change(['a', 'b'])
  await copy.write(topic.log, 'id-1', none)
  topic.change(['b', 'c'], ['a'])
  const set = topic.change(['d'])
  // The change before it is missing in these changes.
  await copy.write(topic.log, 'id-1', changesOf(set, 2))
  expect((await copied(copy)).log.all).toEqual(topic.log.all)
  const other = newTopic('other')
  for (let change = 0; change < 9; change++) other.change(['x'])
  await copy.write(other.log, 'id-1', none)
  expect([...(await copied(copy)).log.all.keys()]).toEqual(['destination/x'])
})

test('several processes keep one copy, and it never goes back', async () => {
  const path = folder()
  const topic = newTopic()
  const set = topic.change(['a'])
  const first = {
    ...changesOf(set, 0),
    head: topic.log.head,
    all: new Map(topic.log.all),
    next: topic.log.next,
  }
  await Promise.all(
    Array.from({ length: 6 }, () => new DiskCopy(path, seals).write(topic.log, 'id-1', changesOf(set, 0))),
  )
  topic.change(['b'])
  await new DiskCopy(path, seals).write(topic.log, 'id-1', none)
  await new DiskCopy(path, seals).write(first, 'id-1', first)
  expect((await copied(new DiskCopy(path, seals))).log.all).toEqual(topic.log.all)
})

test('a copy that was edited is not used, and says why; one of others counts as none', async () => {
  const path = folder()
  const copy = new DiskCopy(path, seals)
  const topic = newTopic()
  topic.change(['a'])
  await copy.write(topic.log, 'id-1', none)
  for (const others of [new RecordSeals('test', catalogKeys()), new RecordSeals('other', keys)]) {
    const other = new DiskCopy(path, others)
    expect([await other.place(), await other.read()]).toEqual([undefined, undefined])
  }
  const level = new ClassicLevel(path)
  const line = (await level.get('destination/a')) ?? ''
  await level.put('destination/a', line.replace('https://example.com', 'https://example.org'))
  await level.close()
  expect(await copy.read()).toContain('destination/a was changed by somebody without the key')
})
