import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import {
  type Asking,
  type LogQuery,
  QueryBusyError,
  QueryTooLongError,
} from '../../../src/delivery-log/log-query.ts'
import { createQueryClient } from '../../../src/delivery-log/query-client.ts'
import { serveQueries } from '../../../src/delivery-log/query-server.ts'
import { sendPipelined } from '../../support/pipelined.ts'
import { until } from '../../support/until.ts'

const all = { fromMs: 0, toMs: Infinity }

const unasked = (): Promise<never> => Promise.reject(new Error('nobody asks that'))

/** Serves an index that answers only `counts`. */
async function serve(counts: LogQuery['counts']): Promise<LogQuery> {
  const query = {
    find: unasked,
    search: unasked,
    percentiles: unasked,
    groups: unasked,
    status: unasked,
    close: unasked,
    counts,
  }
  const server = await serveQueries({ query, host: '127.0.0.1', port: 0, token: undefined })
  onTestFinished(() => server.stop())
  return createQueryClient(`http://127.0.0.1:${server.port}`, undefined)
}

test('a question that takes too long is told as one, in the words of the index', async () => {
  const words = 'a question to the delivery log takes longer than 10 s: ask for less time'
  const client = await serve(() => Promise.reject(new QueryTooLongError(words)))
  await expect(client.counts(all)).rejects.toEqual(new QueryTooLongError(words))
})

test('the index hears that the client of a question is gone', async () => {
  const asked = Promise.withResolvers<Asking | undefined>()
  const client = await serve((_, asking) => {
    asked.resolve(asking)
    return new Promise(() => {})
  })
  const leaving = new AbortController()
  const left = Promise.allSettled([client.counts(all, { signal: leaving.signal })])
  const asking = await asked.promise
  expect(asking?.signal?.aborted).toBe(false)
  const heard = new Promise((resolve) => asking?.signal?.addEventListener('abort', resolve, { once: true }))
  leaving.abort()
  await heard
  expect(await left).toMatchObject([{ status: 'rejected' }])
})

test('a question that is answered is not told as one that nobody waits for', async () => {
  let asking: Asking | undefined
  const client = await serve(async (_, given) => {
    asking = given
    return []
  })
  expect(await client.counts(all)).toEqual([])
  expect(await client.counts(all)).toEqual([])
  expect(asking?.signal?.aborted).toBe(false)
})

test('few questions of a client that does not wait for answers are answered', async () => {
  let questions = 0
  const status = async (): Promise<never> => {
    questions++
    throw new Error('it is not known')
  }
  const query = {
    find: unasked,
    search: unasked,
    percentiles: unasked,
    groups: unasked,
    counts: unasked,
    close: unasked,
    status,
  }
  const server = await serveQueries({ query, host: '127.0.0.1', port: 0, token: undefined })
  onTestFinished(() => server.stop())
  await sendPipelined(
    server.port,
    'POST /v1/log/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
  )
  expect(questions).toBe(16)
})

test('more than 16 questions at once are refused, and a question after them is answered', async () => {
  const answered = Promise.withResolvers<never[]>()
  const client = await serve(() => answered.promise)
  const asked = Promise.allSettled(Array.from({ length: 20 }, () => client.counts(all)))
  const refused = client.counts(all).catch((error: unknown) => error)
  expect(await refused).toBeInstanceOf(QueryBusyError)
  answered.resolve([])
  const statuses = (await asked).map(({ status }) => status)
  expect(statuses.filter((status) => status === 'fulfilled')).toHaveLength(16)
  expect(await client.counts(all)).toEqual([])
})

test('clients that never read their answers leave little memory behind, and others are answered', async () => {
  // An answer has 2 MB.
  const minute = { minuteMs: 0, kind: 'attempted', verdict: 'x'.repeat(1_000), reason: '', count: 1 } as const
  const counted = Array.from({ length: 2_000 }, () => minute)
  const query = {
    find: unasked,
    search: unasked,
    percentiles: unasked,
    groups: unasked,
    status: unasked,
    close: unasked,
    counts: () => Promise.resolve(counted),
  }
  const closed: string[] = []
  const server = await serveQueries({
    query,
    host: '127.0.0.1',
    port: 0,
    token: undefined,
    onClosed: (why) => closed.push(why),
  })
  onTestFinished(() => server.stop())
  const { port } = server
  const client = createQueryClient(`http://127.0.0.1:${port}`, undefined)
  const body = JSON.stringify({ filter: { fromMs: 0, toMs: 1 } })
  const head = `POST /v1/log/counts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`
  const beforeBytes = process.memoryUsage.rss()
  for (let round = 0; round < 25; round++) {
    const socket = connect(port, '127.0.0.1').pause()
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    // The system takes a few megabytes of each connection.
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`.repeat(8))
    const answered = () => client.counts({ fromMs: 0, toMs: 1 }).catch(() => undefined)
    expect(await until('another client is answered', answered)).toHaveLength(counted.length)
  }
  expect(closed.length).toBeGreaterThan(10)
  expect(new Set(closed)).toEqual(new Set(['unread']))
  // Together, the answers have 400 MB.
  expect(process.memoryUsage.rss() - beforeBytes).toBeLessThan(250_000_000)
})

test.each(['', 'POST /v1/log/sta', 'POST /v1/log/status HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{'])(
  'a client that sends only %j is cut off',
  async (text) => {
    const query = {
      find: unasked,
      search: unasked,
      percentiles: unasked,
      groups: unasked,
      counts: unasked,
      close: unasked,
      status: unasked,
    }
    const server = await serveQueries({
      query,
      host: '127.0.0.1',
      port: 0,
      token: undefined,
      requestTimeoutMs: 200,
    })
    onTestFinished(() => server.stop())
    const socket = connect(server.port, '127.0.0.1').resume()
    socket.write(text)
    await once(socket, 'close')
    expect(socket.bytesWritten).toBe(text.length)
  },
)
