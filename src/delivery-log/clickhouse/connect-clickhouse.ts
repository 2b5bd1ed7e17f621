import { Agent as HttpsAgent } from 'node:https'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { http } from '../../http/node-http.ts'
import { QueryFailedError } from '../log-query.ts'
import type { Asked } from './query-sql.ts'

export type ClickHouseAccess = {
  /** The address of the server, such as `https://host:8443`. */
  readonly url: string
  readonly user: string
  /**
   * Returns the password. This function is called for each request, so that a new password needs no restart.
   */
  readonly password: () => string | undefined
  /**
   * The certificate authorities that are trusted, in PEM. `undefined`: the certificate authorities that Node
   * trusts.
   */
  readonly ca: readonly string[] | undefined
  readonly timeoutMs: number
}

/**
 * A ClickHouse server, or a cluster that is reached at one address. If a method fails, it rejects with a
 * `QueryFailedError` that says what is wrong.
 */
export type ClickHouse = {
  /**
   * Runs a query and resolves with its rows. A row is an array of values. A number of 64 bits may be a text.
   */
  rows(asked: Asked, signal?: AbortSignal): Promise<readonly (readonly unknown[])[]>
  /** Inserts rows in one request. `bytes` are the rows in the format RowBinary. */
  insert(into: string, bytes: Uint8Array): Promise<void>
  /** Runs a statement that returns no rows. */
  run(asked: Asked): Promise<void>
  close(): Promise<void>
}

const maxSockets = 10
/**
 * The time after which an idle connection is closed, in milliseconds. It is shorter than the three seconds
 * after which older servers close idle connections.
 */
const idleMs = 2_000

const insertSettings = {
  // A rebuild of the index inserts rows of many days at once, and each day is a partition of the table.
  max_partitions_per_insert_block: '0',
  // Overrides the profile of the ClickHouse user. The rows must be stored when the insert is answered,
  // because the positions are written next.
  async_insert: 0,
} as const

export function connectClickHouse(access: ClickHouseAccess): ClickHouse {
  const { url, user, password, ca, timeoutMs } = access
  const { origin, pathname, protocol } = new URL(url)
  const client = createClient({
    url: origin,
    pathname: pathname === '/' ? '' : pathname,
    application: 'sluice',
    request_timeout: timeoutMs,
    http_agent:
      protocol === 'https:'
        ? new HttpsAgent({ keepAlive: true, maxSockets, ...(ca !== undefined && { ca: [...ca] }) })
        : new http.Agent({ keepAlive: true, maxSockets }),
    keep_alive: { enabled: true, idle_socket_ttl: idleMs },
    log: { level: ClickHouseLogLevel.OFF },
  })
  /** Settings with which the server stops a query when its client doesn't wait any longer. */
  const settings = {
    max_execution_time: Math.ceil(timeoutMs / 1_000),
    cancel_http_readonly_queries_on_client_close: 1,
  } as const
  const auth = () => ({ auth: { username: user, password: password() ?? '' } })
  async function ask<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      const why = cause instanceof Error && cause.message !== '' ? cause.message : String(cause)
      throw new QueryFailedError(`ClickHouse at ${url} does not answer as it should: ${why}`, { cause })
    }
  }
  return {
    rows: ({ sql, params }, signal) =>
      ask(async () => {
        const result = await client.query({
          query: sql,
          query_params: { ...params },
          format: 'JSONCompactEachRow',
          clickhouse_settings: settings,
          ...(signal !== undefined && { abort_signal: signal }),
          ...auth(),
        })
        return await result.json<readonly unknown[]>()
      }),
    insert: (into, bytes) =>
      ask(async () => {
        const { stream } = await client.exec({
          query: `INSERT INTO ${into} FORMAT RowBinary`,
          values: Readable.from([bytes]),
          clickhouse_settings: insertSettings,
          ...auth(),
        })
        await text(stream)
      }),
    run: ({ sql, params }) =>
      ask(async () => {
        await client.command({ query: sql, query_params: { ...params }, ...auth() })
      }),
    close: () => client.close(),
  }
}
