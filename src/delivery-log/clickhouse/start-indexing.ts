import { setTimeout as delay } from 'node:timers/promises'
import { BlockReader } from '../block-reader.ts'
import { believedMs, type Indexing, type IndexingEvents, type TopicBlock } from '../indexing.ts'
import type { ClickHouse } from './connect-clickhouse.ts'
import { keyRows, positionRows, RowWriter } from './row-writer.ts'
import { columns, keyColumns, quoted, type Tables } from './tables.ts'

export type ClickHouseIndexingOptions = IndexingEvents & {
  readonly clickHouse: ClickHouse
  readonly tables: Tables
  readonly keptMs: number
  readonly log: Record<'info' | 'warn', (fields: object, message: string) => void>
}

/** Thrown when a table or a column doesn't exist. The error's message names what is missing. */
class MissingTablesError extends Error {
  override readonly name = 'MissingTablesError'
}

/**
 * The interval at which waiting rows are inserted, in milliseconds. If `insertRows` rows wait, they are
 * inserted at once. Many rows are inserted together, because each insert creates files that ClickHouse has to
 * merge.
 */
const insertEveryMs = 1_000
const insertRows = 100_000
const firstPauseMs = 500
const longestPauseMs = 15_000
/**
 * The time that the last insert may take when indexing stops, in milliseconds. If the insert takes longer, no
 * record is lost, because the topic still has the records.
 */
const stopWithinMs = 5_000

/** Rows that are inserted together, with the positions in the topic after these rows. */
type Batch = {
  readonly rows: RowWriter
  /** Rows of the table of keys for indexed values. */
  readonly keys: Buffer[]
  readonly next: Map<number, number>
  bytes: number
  unreadable: number
  expired: number
}

/**
 * Starts to insert the records of the topic into ClickHouse. A position is written after all rows before it
 * are stored, so a crash loses no rows. After a crash, some rows are inserted again, with the same key. While
 * ClickHouse accepts no rows, the same batch is tried again and again, and later records stay in the topic.
 */
export async function startClickHouseIndexing(options: ClickHouseIndexingOptions): Promise<Indexing> {
  await checkTables(options)
  const positions = await readPositions(options)
  const indexing = new Inserting(options, positions)
  return indexing
}

class Inserting implements Indexing {
  readonly positions: ReadonlyMap<number, { next: number; topicId: string }>
  readonly #options: ClickHouseIndexingOptions
  readonly #topicIds = new Map<number, string>()
  readonly #reader = new BlockReader()
  readonly #timer: NodeJS.Timeout
  readonly #stopping = new AbortController()
  #filling: Batch = newBatch()
  #spare: Batch | undefined = newBatch()
  #inserting: Promise<void> = Promise.resolve()
  #heldBytes = 0
  #trouble: string | undefined

  constructor(
    options: ClickHouseIndexingOptions,
    positions: ReadonlyMap<number, { next: number; topicId: string }>,
  ) {
    this.#options = options
    this.positions = positions
    for (const [partition, { topicId }] of positions) this.#topicIds.set(partition, topicId)
    this.#timer = setInterval(() => this.#insert(), insertEveryMs)
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  get trouble(): string | undefined {
    return this.#trouble
  }

  restart(partition: number, next: number, topicId: string): void {
    this.#topicIds.set(partition, topicId)
    this.#filling.next.set(partition, next)
  }

  add(blocks: readonly TopicBlock[]): void {
    for (const block of blocks) {
      this.#take(block)
      this.#filling.bytes += block.value.length
      this.#heldBytes += block.value.length
      if (this.#filling.rows.rows >= insertRows) this.#insert()
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const limit = setTimeout(() => this.#stopping.abort(), stopWithinMs)
    try {
      await this.#inserting
      this.#insert()
      if (this.#trouble !== undefined) this.#stopping.abort()
      await this.#inserting
    } finally {
      clearTimeout(limit)
    }
  }

  #take({ partition, offset, timestampMs, value }: TopicBlock): void {
    const batch = this.#filling
    const reader = this.#reader
    const keptFromMs = Date.now() - this.#options.keptMs
    try {
      if (reader.open(Buffer.from(value.buffer, value.byteOffset, value.length))) {
        for (let number = 0; reader.next(); number++) {
          const atMs = believedMs(reader.atMs, timestampMs)
          const at = { atMs, unit: partition, offset, number }
          if (atMs < keptFromMs) batch.expired++
          else batch.rows.add(reader, at)
          if (atMs >= keptFromMs && reader.valuesEnd > reader.valuesAt) batch.keys.push(keyRows(reader, at))
        }
      } else batch.unreadable++
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      batch.unreadable++
    }
    batch.next.set(partition, offset + 1)
  }

  /** Inserts the waiting rows. If an insert is under way, these rows are inserted after it. */
  #insert(): void {
    const { next } = this.#filling
    if (this.#spare === undefined || next.size === 0) return
    const batch = this.#filling
    this.#filling = this.#spare
    this.#spare = undefined
    this.#inserting = this.#insertUntilTaken(batch)
  }

  async #insertUntilTaken(batch: Batch): Promise<void> {
    const { log, onIndexed, onTaken } = this.#options
    const { signal } = this.#stopping
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        await this.#insertOnce(batch)
        break
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (this.#trouble === undefined)
          log.warn(
            { reason },
            'ClickHouse does not accept the delivery log: trying again; the topic keeps the records meanwhile',
          )
        this.#trouble = reason
        await delay(pauseMs, undefined, { signal }).catch(() => undefined)
        if (signal.aborted) return
      }
    }
    if (this.#trouble !== undefined) log.info({}, 'ClickHouse accepts the delivery log again')
    this.#trouble = undefined
    this.#heldBytes -= batch.bytes
    onIndexed({ rows: batch.rows.rows, unreadable: batch.unreadable, expired: batch.expired })
    clear(batch)
    this.#spare = batch
    onTaken()
    if (this.#filling.rows.rows >= insertRows) this.#insert()
  }

  async #insertOnce({ rows, keys, next }: Batch): Promise<void> {
    const { clickHouse, tables } = this.#options
    const names = columns.map(([name]) => name).join(', ')
    if (rows.rows > 0) await clickHouse.insert(`${quoted(tables, tables.attempts)} (${names})`, rows.bytes)
    if (keys.length > 0)
      await clickHouse.insert(
        `${quoted(tables, tables.keys)} (${keyColumns.join(', ')})`,
        Buffer.concat(keys),
      )
    const writtenAtMs = Date.now()
    const written = [...next].map(([partition, to]) => ({
      partition,
      next: to,
      topicId: this.#topicIds.get(partition) ?? '',
      writtenAtMs,
    }))
    const into = `${quoted(tables, tables.positions)} (partition, next, topic_id, written_at)`
    await clickHouse.insert(into, positionRows(written))
  }
}

function newBatch(): Batch {
  return { rows: new RowWriter(), keys: [], next: new Map(), bytes: 0, unreadable: 0, expired: 0 }
}

function clear(batch: Batch): void {
  batch.rows.clear()
  batch.keys.length = 0
  batch.next.clear()
  batch.bytes = 0
  batch.unreadable = 0
  batch.expired = 0
}

async function checkTables({ clickHouse, tables }: ClickHouseIndexingOptions): Promise<void> {
  const rows = await clickHouse.rows({
    sql: 'SELECT table, name FROM system.columns WHERE database = {database:String} AND table IN {names:Array(String)}',
    params: { database: tables.database, names: [tables.attempts, tables.keys, tables.positions] },
  })
  const found = new Set(rows.map(([table, name]) => `${String(table)}.${String(name)}`))
  const missing = [
    ...columns.map(([name]) => `${tables.attempts}.${name}`),
    `${tables.keys}.hash`,
    `${tables.positions}.next`,
  ].filter((name) => !found.has(name))
  if (missing.length === 0) return
  const shown = missing.slice(0, 3).join(', ')
  throw new MissingTablesError(
    `the database ${tables.database} has no ${shown}${missing.length > 3 ? ' …' : ''}`,
  )
}

async function readPositions({ clickHouse, tables }: ClickHouseIndexingOptions) {
  const rows = await clickHouse.rows({
    sql: `SELECT partition, argMax(next, written_at), argMax(topic_id, written_at) FROM ${quoted(tables, tables.positions)} GROUP BY partition`,
    params: {},
  })
  return new Map(
    rows.map(([partition, next, topicId]) => [
      Number(partition),
      { next: Number(next), topicId: String(topicId) },
    ]),
  )
}
