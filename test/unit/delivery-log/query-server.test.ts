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
