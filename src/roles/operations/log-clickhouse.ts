import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { ClickHouse } from '../../delivery-log/clickhouse/connect-clickhouse.ts'
import { ddl, type Tables, tablesOf } from '../../delivery-log/clickhouse/tables.ts'
import type { Indexing, IndexingEvents } from '../../delivery-log/indexing.ts'
import { type LogQuery, QueryFailedError } from '../../delivery-log/log-query.ts'
import { LoginError } from '../../http/login-error.ts'
import { authorityReader, passwordReader } from '../../http/reread-file.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'

export type ClickHouseLog = {
  startIndexing(events: IndexingEvents, log: Logger): Promise<Indexing>
  /**
   * Opens the delivery log for queries. When the returned `LogQuery` is closed, all connections to ClickHouse
   * are closed.
   */
  query(behindMs: () => number): LogQuery
  close(): Promise<void>
}

/** Opens the delivery log in ClickHouse. Resolves with `undefined` if no ClickHouse is configured. */
export async function openClickHouse(
  config: Config,
  log?: Pick<Logger, 'warn'>,
): Promise<ClickHouseLog | undefined> {
  const clickHouse = await connect(config, log)
  if (clickHouse === undefined) return undefined
  const tables = tablesIn(config)
  const { startClickHouseIndexing } = await import('../../delivery-log/clickhouse/start-indexing.ts')
  const { openClickHouseQuery } = await import('../../delivery-log/clickhouse/clickhouse-query.ts')
  return {
    async startIndexing(events, logger) {
      const keptMs = config.attempts.retentionMs
      try {
        return await startClickHouseIndexing({ ...events, clickHouse, tables, keptMs, log: logger })
      } catch (cause) {
        await clickHouse.close()
        throw startErrorOf(cause)
      }
    },
    query: (behindMs) => openClickHouseQuery({ clickHouse, tables, behindMs }),
    close: () => clickHouse.close(),
  }
}

/** Returns the statements that create the tables and set their retention. */
export function printClickHouseTables(config: Config): readonly string[] {
  return ddl(tablesIn(config), config.attempts.retentionMs).map((statement) => `${statement};`)
}

/** Runs the statements that create the tables and set their retention. */
export async function applyClickHouseTables(config: Config, log: Logger): Promise<readonly string[]> {
  const clickHouse = await connect(config, log)
  if (clickHouse === undefined) {
    throw new StartError(
      'No ClickHouse is configured: set clickhouse.url (SLUICE_CLICKHOUSE_URL), such as https://clickhouse:8443.',
    )
  }
  const tables = tablesIn(config)
  try {
    for (const sql of ddl(tables, config.attempts.retentionMs)) await clickHouse.run({ sql, params: {} })
  } catch (cause) {
    throw startErrorOf(cause)
  } finally {
    await clickHouse.close()
  }
  return [`The tables ${tables.database}.${tables.attempts}… are there.`]
}

function tablesIn(config: Config): Tables {
  return tablesOf(config.clickhouse.database, topicNames(config).attempts)
}

async function connect(config: Config, log?: Pick<Logger, 'warn'>): Promise<ClickHouse | undefined> {
  const { url, user, password: given, passwordFile, caFile, timeoutMs } = config.clickhouse
  if (url === undefined) return undefined
  // ClickHouse's client is loaded only here, because most installations have no ClickHouse.
  const { connectClickHouse } = await import('../../delivery-log/clickhouse/connect-clickhouse.ts')
  const onKept = (message: string): void => log?.warn({ clickhouse: url }, message)
  try {
    const setting = 'clickhouse.passwordFile (SLUICE_CLICKHOUSE_PASSWORD_FILE)'
    const password = passwordReader(given, passwordFile, setting, onKept)
    const ca = authorityReader(caFile, onKept, 'clickhouse.caFile (SLUICE_CLICKHOUSE_CA_FILE)')()
    return connectClickHouse({ url, user, password, ca, timeoutMs })
  } catch (cause) {
    throw cause instanceof LoginError ? new StartError(cause.message, { cause }) : cause
  }
}

/**
 * Returns an error to throw for an error of ClickHouse. If advice for the cause is known, this is a
 * StartError that says what to do. Otherwise it is the cause itself.
 */
function startErrorOf(cause: unknown): unknown {
  if (cause instanceof QueryFailedError)
    return new StartError(
      `${cause.message}. See clickhouse.url (SLUICE_CLICKHOUSE_URL) and clickhouse.user.`,
      {
        cause,
      },
    )
  if (cause instanceof Error && cause.name === 'MissingTablesError') {
    return new StartError(
      `The tables of the delivery log in ClickHouse are not there: ${cause.message}. Run \`sluice log ddl --apply\`, or have what \`sluice log ddl\` prints run by whoever may; then start again.`,
      { cause },
    )
  }
  return cause
}
