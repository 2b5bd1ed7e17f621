import { expect, onTestFinished, test, vi } from 'vitest'
import type { Catalog, Destination } from '../../../../src/catalog/catalog.ts'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { readConfig } from '../../../../src/config/read.ts'
import type { KeyedRecord } from '../../../../src/message/records.ts'
import { encodeGone } from '../../../../src/notices/gone-record.ts'
import { encodePause } from '../../../../src/notices/pause-record.ts'
import { AutoPauses } from '../../../../src/roles/member/auto-pauses.ts'
import { quietLog } from '../../../support/emitted-lines.ts'

const main = '{ id: main, url: https://main.example/ }'
const spare = '{ id: spare, url: https://spare.example/ }'

function catalogOf(hooks: string, more = '', source = 'shop'): Catalog {
  const crm = `{ id: crm, sources: [${source}], hooks: [${hooks}]${more} }`
  const parsed = parseCatalog(`{ sources: [{ id: shop }, { id: sluice }], destinations: [${crm}] }`, {
    file: 'catalog.yaml',
  })
  if (!parsed.ok) throw new Error('the catalog has faults')
  return parsed.catalog
}

/** The topic `notices`, in memory. */
class Topic {
  readonly records: KeyedRecord[] = []
  isDown = false

  write(record: Pick<KeyedRecord, 'key' | 'value'>): void {
    if (this.isDown) throw new Error('Kafka is down')
    this.records.push({ ...record, offset: this.records.length, timestampMs: Date.now() })
  }

  resume(): void {
    const content = { atMs: Date.now(), by: 'ann', cause: 'asked' } as const
    this.write(encodePause({ kind: 'resumed', destinationId: 'crm', content }))
  }
}

/** A worker with a catalog, which reads the topic when a test says so. */
class Worker {
  catalog: Catalog
  readonly pauses: AutoPauses
  readonly #topic: Topic
  #read = 0

  constructor(topic: Topic, catalog: Catalog, env: Readonly<Record<string, string>> = {}) {
    const config = readConfig({ env })
    if (!config.ok) throw new Error(config.message)
    this.catalog = catalog
    this.#topic = topic
    this.pauses = new AutoPauses({
      config: config.config,
      log: quietLog,
      file: { current: () => this.catalog, refused: () => undefined, onChange() {} },
      isStalled: () => false,
    })
    this.pauses.gone.connect(async (record) => topic.write(encodeGone(record)))
  }

  look(): void {
    for (const record of this.#topic.records.slice(this.#read)) this.pauses.take(record)
    this.#read = this.#topic.records.length
    this.pauses.taken()
  }

  get crm(): Destination {
    const crm = this.pauses.catalog.destinations.get('crm')
    if (crm === undefined) throw new Error('no destination crm')
    return crm
  }

  /** The state of the destination, and the hooks that it still has. */
  get shown(): string {
    return [this.crm.state, ...this.crm.hooks.map(({ id }) => id)].join(' ')
  }

  answers410(hookId = 'main'): boolean {
    const definition = this.catalog.destinations.get('crm')
    return definition !== undefined && this.pauses.answeredGone(definition, hookId, 'status 410')
  }
}

function twoWorkers(hooks: string): { topic: Topic; one: Worker; other: Worker } {
  const topic = new Topic()
  return {
    topic,
    one: new Worker(topic, catalogOf(hooks)),
    other: new Worker(topic, catalogOf(hooks)),
  }
}

test('a 410 of the only URL pauses the destination, at once where it came and at each worker that reads the record', () => {
  const { topic, one, other } = twoWorkers(main)
  expect(one.answers410()).toBe(true)
  expect([one.shown, other.shown]).toEqual(['auto_paused main', 'on main'])
  other.look()
  expect(other.shown).toBe('auto_paused main')
  const started = new Worker(topic, catalogOf(main))
  started.look()
  expect(started.shown).toBe('auto_paused main')
  expect(started.pauses.goneCount).toBe(1)
})

test('a 410 of one of two URLs leaves the other one, and the destination keeps its object', () => {
  const { one, other } = twoWorkers(`${main}, ${spare}`)
  one.answers410()
  for (const worker of [one, other]) {
    worker.look()
    const { crm } = worker
    expect(worker.shown).toBe('on spare')
    worker.look()
    expect(worker.crm).toBe(crm)
  }
  other.answers410('spare')
  one.look()
  expect(one.shown).toBe('auto_paused main spare')
})

test.each([
  ['another URL', '{ id: main, url: https://moved.example/ }'],
  ['another header', '{ id: main, url: https://main.example/, headers: { X-Key: new } }'],
])('an edit to %s ends it', (_what, hooks) => {
  const { one } = twoWorkers(main)
  one.answers410()
  one.look()
  one.catalog = catalogOf(hooks)
  expect(one.shown).toBe('on main')
})

test('a resumption ends it at all workers', () => {
  const { topic, one, other } = twoWorkers(main)
  one.answers410()
  topic.resume()
  for (const worker of [one, other]) {
    worker.look()
    expect(worker.shown).toBe('on main')
  }
  one.answers410()
  other.look()
  expect([one.shown, other.shown]).toEqual(['auto_paused main', 'auto_paused main'])
})

test('a worker that has not read of a resumption does not pause what was resumed', () => {
  const { topic, one, other } = twoWorkers(main)
  other.answers410()
  topic.resume()
  one.answers410()
  for (const worker of [one, other]) worker.look()
  expect([one.shown, other.shown]).toEqual(['on main', 'on main'])
})

test('while the topic can not be written, the worker that saw it knows it, and tells it later', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { topic, one, other } = twoWorkers(main)
  topic.isDown = true
  one.answers410()
  one.look()
  expect([one.shown, topic.records.length]).toEqual(['auto_paused main', 0])
  topic.isDown = false
  vi.advanceTimersByTime(20_000)
  one.look()
  other.look()
  expect([one.shown, other.shown]).toEqual(['auto_paused main', 'auto_paused main'])
})

test.each([
  ['the setting is off', catalogOf(main), { SLUICE_DELIVERY_STOP_ON_GONE: 'false' }],
  ['the destination is never paused', catalogOf(main, ', autoPause: off'), {}],
  ['the destination gets notices', catalogOf(main, '', 'sluice'), {}],
])('nothing is gone where %s', (_what, catalog, env) => {
  const topic = new Topic()
  const worker = new Worker(topic, catalog, env)
  expect(worker.answers410()).toBe(false)
  expect([worker.shown, topic.records.length]).toEqual(['on main', 0])
})

test('a 410 for a request to a URL that was edited meanwhile says nothing about the new one', () => {
  const { one } = twoWorkers(main)
  const before = one.catalog.destinations.get('crm')
  one.catalog = catalogOf('{ id: main, url: https://moved.example/ }')
  expect(before && one.pauses.answeredGone(before, 'main', 'status 410')).toBe(false)
  expect(one.shown).toBe('on main')
})

test('a topic that was created again is read anew', () => {
  const { one } = twoWorkers(main)
  one.answers410()
  one.look()
  one.pauses.reset()
  one.pauses.taken()
  expect(one.shown).toBe('on main')
})
