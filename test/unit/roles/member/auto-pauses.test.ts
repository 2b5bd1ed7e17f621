import { expect, test } from 'vitest'
import { urlsDigestOf } from '../../../../src/catalog/auto-pause.ts'
import { type Catalog, createCatalog } from '../../../../src/catalog/catalog.ts'
import { nextCatalog, stateCountsOf, withVersions } from '../../../../src/catalog/next-catalog.ts'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { encodePause, type PauseRecord } from '../../../../src/notices/pause-record.ts'
import { AutoPauses } from '../../../../src/roles/member/auto-pauses.ts'
import { quietLog } from '../../../support/emitted-lines.ts'

const count = 500

/** A catalog that notes which destinations are looked at. */
function watchedCatalog(looked: Set<string>): Catalog {
  const entries = Array.from(
    { length: count },
    (_, index) =>
      `{ id: d${index}, sources: [shop], autoPause: 1h, hooks: [{ url: https://d${index}.example/ }] }`,
  )
  const parsed = parseCatalog(`{ sources: [{ id: shop }], destinations: [${entries.join(', ')}] }`, {
    file: 'catalog.yaml',
  })
  if (!parsed.ok) throw new Error('the catalog has faults')
  const watched = [...parsed.catalog.destinations.values()].map(
    (destination) =>
      new Proxy(destination, {
        get(target, field) {
          looked.add(target.id)
          return Reflect.get(target, field)
        },
      }),
  )
  return withVersions(createCatalog([...parsed.catalog.sources.values()], watched, 'v1'))
}

/** A worker with many destinations, and a topic of pauses. */
class Worker {
  readonly looked = new Set<string>()
  readonly lines: object[] = []
  catalog: Catalog
  told = 0
  readonly pauses: AutoPauses
  readonly #listeners: ((catalog: Catalog, before: Catalog) => void)[] = []
  #offset = 0

  constructor() {
    const config = readConfig({ env: {} })
    if (!config.ok) throw new Error(config.message)
    this.catalog = watchedCatalog(this.looked)
    this.pauses = new AutoPauses({
      config: config.config,
      log: { ...quietLog, info: (fields: object) => void this.lines.push(fields) },
      file: {
        current: () => this.catalog,
        refused: () => undefined,
        onChange: (listener) => void this.#listeners.push(listener),
      },
      isStalled: () => false,
    })
    // As a worker does, which shows the counts.
    this.pauses.onChange(() => {
      this.told++
      stateCountsOf(this.pauses.catalog)
    })
    stateCountsOf(this.pauses.catalog)
  }

  /** Reads records, and returns the destinations that were looked at. */
  read(...records: readonly PauseRecord[]): readonly string[] {
    this.looked.clear()
    for (const record of records) {
      const encoded = encodePause(record)
      this.pauses.take({ ...encoded, offset: this.#offset++, timestampMs: Date.now() })
    }
    this.pauses.taken()
    return [...this.looked]
  }

  /** Takes the next catalog, in which one destination is another one. Returns those that were looked at. */
  edit(id: string): readonly string[] {
    this.looked.clear()
    const before = this.catalog
    const old = before.destinations.get(id)
    if (old === undefined) throw new Error(`there is no ${id}`)
    const destinations = new Map([[id, { ...old, name: 'edited' }]])
    this.catalog = nextCatalog(before, { sources: new Map(), destinations }, 'v2')
    for (const listener of this.#listeners) listener(this.catalog, before)
    return [...this.looked]
  }

  pauseOf(destinationId: string): PauseRecord {
    const destination = this.catalog.destinations.get(destinationId)
    if (destination === undefined) throw new Error(`there is no ${destinationId}`)
    const urls = urlsDigestOf(destination)
    const content = { sinceMs: 1, atMs: 2, urls, lastOutcome: 'status 500', readTo: this.#offset }
    return { kind: 'paused', destinationId, content }
  }

  stateOf(id: string): string | undefined {
    return this.pauses.catalog.destinations.get(id)?.state
  }
}

const resumed: PauseRecord = {
  kind: 'resumed',
  destinationId: 'd7',
  content: { atMs: 3, by: 'ann', cause: 'asked' },
}

test('what is read of one destination looks at that one, and at no other', () => {
  const worker = new Worker()
  expect(worker.read()).toEqual([])
  expect(worker.read(worker.pauseOf('d7'))).toEqual(['d7'])
  expect(worker.stateOf('d7')).toBe('auto_paused')
  expect(worker.pauses.isOn()).toBe(true)
  expect(worker.edit('d9')).toEqual(['d9'])
  expect(worker.stateOf('d7')).toBe('auto_paused')
  expect(worker.read(resumed)).toEqual(['d7'])
  expect(worker.stateOf('d7')).toBe('on')
  expect(worker.lines).toEqual([
    { paused: ['d7'], resumed: [], count: 1 },
    { paused: [], resumed: ['d7'], count: 0 },
  ])
  expect(worker.told).toBe(3)
})

test('a failure clock, and a pause that is read again, change nothing', () => {
  const worker = new Worker()
  const urls = 'digest'
  expect(worker.read({ kind: 'clock', destinationId: 'd7', content: { sinceMs: 1, urls } })).toEqual([])
  worker.read(worker.pauseOf('d7'))
  const { catalog } = worker.pauses
  worker.read(worker.pauseOf('d7'))
  expect(worker.pauses.catalog).toBe(catalog)
  expect(worker.told).toBe(1)
})

test('whether Sluice may pause any destination is known after edits too', () => {
  const worker = new Worker()
  const off = new Map(
    [...worker.catalog.destinations].map(([id, one]) => [id, { ...one, autoPauseMs: 0 }] as const),
  )
  expect(worker.pauses.isOn()).toBe(true)
  worker.catalog = nextCatalog(worker.catalog, { sources: new Map(), destinations: off }, 'v2')
  expect(worker.pauses.isOn()).toBe(false)
  worker.edit('d3')
  expect(worker.pauses.isOn()).toBe(false)
})
