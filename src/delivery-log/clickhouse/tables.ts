// The names and definitions of the delivery log's tables in ClickHouse.

export type Tables = {
  readonly database: string
  /** The table with a row for each record of the delivery log. */
  readonly attempts: string
  /** The table of keys, which says where the rows of a message, a user or an indexed value are. */
  readonly keys: string
  /** The view that fills the table of keys. */
  readonly keysView: string
  /**
   * The table of positions. For each partition of the topic, this table has the offset up to which the
   * records are in the other tables.
   */
  readonly positions: string
}

/**
 * Returns the names of the tables for a topic. For example, the topic `sluice.attempts` has the table
 * `sluice_attempts`.
 */
export function tablesOf(database: string, topic: string): Tables {
  const name = topic.replaceAll(/[^A-Za-z0-9_]/g, '_')
  return {
    database,
    attempts: name,
    keys: `${name}_keys`,
    keysView: `${name}_keys_view`,
    positions: `${name}_positions`,
  }
}

/** Returns the name of a table in SQL, with its database. */
export function quoted({ database }: Tables, table: string): string {
  return `\`${database}\`.\`${table}\``
}

/** The columns of a row with their types, in the order in which rows are written. */
export const columns = [
  ['destination', 'LowCardinality(String)'],
  ['at', "DateTime64(3, 'UTC')"],
  ['unit', 'UInt32'],
  ['offset', 'UInt64'],
  ['number', 'UInt32'],
  ['kind', 'LowCardinality(String)'],
  ['is_end', 'Bool'],
  ['weight', 'UInt32'],
  ['hook', 'LowCardinality(String)'],
  ['source', 'LowCardinality(String)'],
  ['message_id', 'String'],
  ['message_type', 'LowCardinality(String)'],
  ['origin_topic', 'LowCardinality(String)'],
  ['origin_partition', 'UInt32'],
  ['origin_offset', 'UInt64'],
  ['attempt', 'UInt32'],
  ['verdict', 'LowCardinality(String)'],
  ['outcome', 'LowCardinality(String)'],
  ['status', 'UInt16'],
  ['duration_us', 'UInt64'],
  ['reason', 'LowCardinality(String)'],
  ['error', 'LowCardinality(String)'],
  ['wait_ms', 'UInt64'],
  ['age_ms', 'Int64'],
  ['user', 'String'],
  ['job', 'LowCardinality(String)'],
  ['answer', 'String'],
] as const
export type ColumnName = (typeof columns)[number][0]

/**
 * The columns that identify a row of a destination: the time, the block of the topic in which the row came,
 * and the row's index in that block.
 */
export const rowKey = ['at', 'unit', 'offset', 'number'] as const satisfies readonly ColumnName[]

const codecs: Readonly<Partial<Record<ColumnName, string>>> = {
  at: 'Delta, ZSTD(1)',
  offset: 'Delta, ZSTD(1)',
  origin_offset: 'Delta, ZSTD(1)',
  message_id: 'ZSTD(1)',
  duration_us: 'T64, ZSTD(1)',
  wait_ms: 'T64, ZSTD(1)',
  age_ms: 'T64, ZSTD(1)',
  number: 'T64, ZSTD(1)',
  user: 'ZSTD(1)',
  answer: 'ZSTD(1)',
}

/** Returns the statements that create the missing tables and then set the configured retention. */
export function ddl(tables: Tables, keptMs: number): readonly string[] {
  const ttl = `toDateTime(at) + INTERVAL ${Math.ceil(keptMs / 1_000)} SECOND`
  const { attempts, keys } = tables
  return [
    `CREATE DATABASE IF NOT EXISTS \`${tables.database}\``,
    attemptsTable(tables, ttl),
    keysTable(tables, ttl),
    keysView(tables),
    positionsTable(tables),
    `ALTER TABLE ${quoted(tables, attempts)} MODIFY TTL ${ttl}`,
    `ALTER TABLE ${quoted(tables, keys)} MODIFY TTL ${ttl}`,
  ]
}

const byDay = 'ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, merge_with_ttl_timeout = 3600'

function attemptsTable(tables: Tables, ttl: string): string {
  const lines = columns.map(([name, type]) => {
    const codec = codecs[name]
    return `  ${name} ${type}${codec === undefined ? '' : ` CODEC(${codec})`}`
  })
  return `CREATE TABLE IF NOT EXISTS ${quoted(tables, tables.attempts)} (
${lines.join(',\n')}
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(at)
PRIMARY KEY (destination, at)
ORDER BY (destination, ${rowKey.join(', ')})
TTL ${ttl}
SETTINGS ${byDay}`
}

function keysTable(tables: Tables, ttl: string): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(tables, tables.keys)} (
  hash UInt64,
  destination LowCardinality(String),
  at DateTime64(3, 'UTC') CODEC(ZSTD(1)),
  unit UInt32 CODEC(ZSTD(1)),
  offset UInt64 CODEC(ZSTD(1)),
  number UInt32 CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(at)
PRIMARY KEY hash
ORDER BY (hash, destination, ${rowKey.join(', ')})
TTL ${ttl}
SETTINGS ${byDay}, index_granularity = 1024`
}

function keysView(tables: Tables): string {
  return `CREATE MATERIALIZED VIEW IF NOT EXISTS ${quoted(tables, tables.keysView)} TO ${quoted(tables, tables.keys)} AS
SELECT
  arrayJoin(arrayConcat(
    if(message_id = '', [], [${hashSql('message', 'message_id')}]),
    if(user = '', [], [${hashSql('user', 'user')}])
  )) AS hash,
  destination, ${rowKey.join(', ')}
FROM ${quoted(tables, tables.attempts)}`
}

/** The columns of a row of the table of keys, in the order in which rows are written. */
export const keyColumns = ['hash', 'destination', ...rowKey] as const

/** Returns the SQL expression for the hash by which the rows of a message or a user are found. */
export function hashSql(what: 'message' | 'user', value: string): string {
  return `sipHash64('${what}', ${value})`
}

function positionsTable(tables: Tables): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(tables, tables.positions)} (
  partition UInt32,
  next UInt64,
  topic_id String,
  written_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY partition`
}
