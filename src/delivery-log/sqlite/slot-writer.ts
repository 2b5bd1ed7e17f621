import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { BlockReader } from '../block-reader.ts'
import { userHashBytes } from '../log-record.ts'
import { openFile } from './open-file.ts'
import { bucketOf, DetailWriter, hashNumber, hashOf, idOf, stepOf } from './row.ts'

/**
 * The tables of a slot. `r`: the records, whose ids begin with their times. `shapes`: combinations of values
 * that many records share. Each combination (a shape) is stored once, and a record has the number of its
 * shape. With the index `rs`, the records of a shape are found in the order of time. The records of a
 * destination, hook, outcome or reason are found by their shapes. `m` and `u`: the ids of records by message
 * and by user. `k`: the ids of records by an indexed value of their message. `w`: the records that stand for
 * several deliveries. `positions`: the positions in the topic up
 * to which this file has all of its records.
 */
const tables = `
  PRAGMA page_size = 8192;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS shapes (
    s INTEGER PRIMARY KEY, kind INTEGER NOT NULL, isEnd INTEGER NOT NULL, verdict INTEGER NOT NULL, outcome INTEGER NOT NULL, status INTEGER NOT NULL,
    destination TEXT NOT NULL, hook TEXT NOT NULL, source TEXT NOT NULL, messageType TEXT NOT NULL, originTopic TEXT NOT NULL, reason TEXT NOT NULL,
    error TEXT NOT NULL, job TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS shapesOf ON shapes (destination);
  CREATE TABLE IF NOT EXISTS r (id INTEGER PRIMARY KEY, s INTEGER NOT NULL, p BLOB NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS rs ON r (s);
  CREATE TABLE IF NOT EXISTS m (h INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (h, id)) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS u (h INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (h, id)) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS k (h INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (h, id)) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS w (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, generation INTEGER NOT NULL, next INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS rows (one INTEGER PRIMARY KEY, n INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;
`

/**
 * A position in a partition of the topic: the generation and the next offset. The generation increases when
 * the topic is created anew or loses records.
 */
export type Position = { readonly generation: number; readonly next: number }

export function isBefore(a: Position, b: Position): boolean {
  return a.generation < b.generation || (a.generation === b.generation && a.next < b.next)
}

/**
 * Returns the generation of each partition in the file of a slot. A generation increases when the topic is
 * created anew or loses records.
 */
export function generationsIn(path: string): (readonly [partition: number, generation: number])[] {
  const database = openFile(path)
  try {
    database.exec(tables)
    const rows = database.prepare('SELECT partition, generation FROM positions').all()
    return rows.map((row) => [Number(row['partition']), Number(row['generation'])] as const)
  } finally {
    database.close()
  }
}

/** A row that waits for the next commit. */
type Pending = {
  id: number
  shape: number
  start: number
  end: number
  weight: number
  message: number
  user: number
  values: readonly number[]
}

const noValues: readonly number[] = []
const noUser = -1
/**
 * Limit on the shapes (rows of the table `shapes`) that are kept in memory. When one more shape comes, all
 * shapes are dropped from memory.
 */
const maxShapes = 50_000

/** Writes the file of one slot, which is one hour. */
export class SlotWriter {
  readonly slot: number
  readonly #database: DatabaseSync
  readonly #shapes = new Map<string, number>()
  readonly #positions = new Map<number, Position>()
  readonly #details = new DetailWriter()
  #pending: Pending[] = []
  #lastShape = 0
  #sequence = 0
  #hasBegun = false
  readonly #insert: Record<
    'row' | 'message' | 'user' | 'value' | 'weight' | 'position' | 'rows',
    StatementSync
  >
  readonly #insertShape: StatementSync
  lastUsedMs = 0

  constructor(slot: number, path: string) {
    this.slot = slot
    this.#database = openFile(path)
    this.#database.exec(tables)
    const prepare = (sql: string): StatementSync => this.#database.prepare(sql)
    this.#insert = {
      row: prepare('INSERT OR IGNORE INTO r VALUES (?, ?, ?)'),
      message: prepare('INSERT INTO m VALUES (?, ?)'),
      user: prepare('INSERT INTO u VALUES (?, ?)'),
      value: prepare('INSERT OR IGNORE INTO k VALUES (?, ?)'),
      weight: prepare('INSERT INTO w VALUES (?, ?)'),
      position: prepare('INSERT OR REPLACE INTO positions VALUES (?, ?, ?)'),
      rows: prepare(
        'INSERT INTO rows VALUES (1, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n, last = max(last, excluded.last)',
      ),
    }
    this.#insertShape = prepare('INSERT INTO shapes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)')
    this.#lastShape = numberIn(prepare('SELECT coalesce(max(s), 0) AS n FROM shapes').get())
    this.#sequence = numberIn(prepare('SELECT coalesce(max(n), 0) AS n FROM rows').get())
    for (const row of prepare('SELECT partition, generation, next FROM positions').all())
      this.#positions.set(Number(row['partition']), {
        generation: Number(row['generation']),
        next: Number(row['next']),
      })
    for (const row of prepare(`SELECT * FROM shapes ORDER BY s DESC LIMIT ${maxShapes}`).all())
      this.#shapes.set(keyOfRow(row), Number(row['s']))
  }

  get pending(): number {
    return this.#pending.length
  }

  has(partition: number, place: Position): boolean {
    const own = this.#positions.get(partition)
    return own !== undefined && isBefore(place, own)
  }

  /** Adds the reader's current record, which `commit` will write. */
  add(reader: BlockReader, unit: number, atMs: number): void {
    this.#begin()
    const shape = this.#shapeOf(reader)
    const isAttempt = reader.kind === 0
    const bucket = isAttempt ? bucketOf(reader.durationMicros) : 0
    const start = this.#details.add(
      {
        attempt: reader.attempt,
        unit,
        originPartition: reader.originPartition,
        originOffset: reader.originOffset,
        durationMicros: reader.durationMicros,
        waitMs: reader.waitMs,
        ageMs: reader.ageMs,
        weight: reader.weight,
        messageId: reader.messageId,
      },
      reader.bytes,
      [reader.userAt, reader.userEnd],
      [reader.answerAt, reader.answerEnd],
    )
    this.#pending.push({
      id: idOf(atMs, bucket, this.#sequence++),
      shape,
      start,
      end: this.#details.at,
      weight: reader.weight,
      message: reader.messageId === '' ? -1 : hashOf(reader.messageId),
      user: reader.userEnd > reader.userAt ? hashNumber(reader.bytes, reader.userAt) : noUser,
      values: valuesIn(reader),
    })
  }

  /**
   * Writes all added rows and the positions after them. A position in the file is never replaced by a lower
   * one. A lower position belongs to a block that is read again after a crash. This slot already has that
   * block's records.
   */
  commit(positions: ReadonlyMap<number, Position>, nowMs: number): void {
    const rows = this.#pending
    this.lastUsedMs = nowMs
    this.#begin()
    try {
      this.#write(rows)
      for (const [partition, position] of positions) {
        if (this.has(partition, position)) continue
        this.#insert.position.run(partition, position.generation, position.next)
        this.#positions.set(partition, position)
      }
      this.#database.exec('COMMIT')
      this.#hasBegun = false
    } catch (error) {
      this.#database.exec('ROLLBACK')
      throw error
    }
    this.#pending = []
    this.#details.clear()
  }

  close(): void {
    this.#database.close()
  }

  #begin(): void {
    if (!this.#hasBegun) this.#database.exec('BEGIN')
    this.#hasBegun = true
  }

  #write(rows: Pending[]): void {
    const { row, message, user, value, weight, rows: counted } = this.#insert
    // Rows are sorted in the order of their B-tree, so that the next row is mostly on the same page.
    rows.sort((a, b) => a.id - b.id)
    const { bytes } = this.#details
    for (const one of rows) {
      const detail = bytes.subarray(one.start, one.end)
      // If the sequence has started again, an earlier row of this millisecond may already have this id.
      const step = stepOf(one.id)
      while (row.run(one.id, one.shape, detail).changes === 0) one.id += step
      if (one.weight > 1) weight.run(one.id, one.weight)
    }
    const last = rows.at(-1)?.id ?? 0
    rows.sort((a, b) => a.message - b.message || a.id - b.id)
    for (const one of rows) if (one.message >= 0) message.run(one.message, one.id)
    rows.sort((a, b) => a.user - b.user || a.id - b.id)
    for (const one of rows) if (one.user !== noUser) user.run(one.user, one.id)
    for (const { values, id } of rows) for (const one of values) value.run(one, id)
    counted.run(rows.length, last)
  }

  #shapeOf(reader: BlockReader): number {
    const key = keyOf(reader)
    const known = this.#shapes.get(key)
    if (known !== undefined) return known
    const shape = ++this.#lastShape
    this.#insertShape.run(
      shape,
      reader.kind,
      reader.isEnd ? 1 : 0,
      reader.verdict,
      reader.outcome,
      reader.status,
      reader.destination,
      reader.hook,
      reader.source,
      reader.messageType,
      reader.originTopic,
      reader.reason,
      reader.error,
      reader.job,
    )
    if (this.#shapes.size >= maxShapes) this.#shapes.clear()
    this.#shapes.set(key, shape)
    return shape
  }
}

function valuesIn({ bytes, valuesAt, valuesEnd }: BlockReader): readonly number[] {
  if (valuesEnd === valuesAt) return noValues
  const values: number[] = []
  for (let at = valuesAt; at < valuesEnd; at += userHashBytes) values.push(hashNumber(bytes, at))
  return values
}

function keyOf(one: BlockReader): string {
  const numbers = `${one.kind},${one.isEnd ? 1 : 0},${one.verdict},${one.outcome},${one.status}`
  return `${numbers}\n${one.destination}\n${one.hook}\n${one.source}\n${one.messageType}\n${one.originTopic}\n${one.reason}\n${one.error}\n${one.job}`
}

const keyNumbers = ['kind', 'isEnd', 'verdict', 'outcome', 'status']
const keyTexts = ['destination', 'hook', 'source', 'messageType', 'originTopic', 'reason', 'error', 'job']

/** Returns the key of a row of the table `shapes`. It is the same key that `keyOf` returns for the shape. */
function keyOfRow(row: Record<string, unknown>): string {
  const numbers = keyNumbers.map((name) => String(row[name])).join(',')
  return [numbers, ...keyTexts.map((name) => String(row[name]))].join('\n')
}

function numberIn(row: Record<string, unknown> | undefined): number {
  return Number(row?.['n'] ?? 0)
}
