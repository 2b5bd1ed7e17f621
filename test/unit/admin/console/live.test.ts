import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { type LiveEnd, LiveStreams } from '../../../../src/admin/console/live.ts'
import { openView, type OpenView } from '../../../support/events.ts'
import { until } from '../../../support/until.ts'

type View = { readonly of: string }

/** Serves live views. The path of a request is what it shows. */
async function serve({ ofHolder = 2, ofAll = 5, heartbeatMs = 60_000 } = {}) {
  const ended: LiveEnd[] = []
  const holders = new Set(['ann', 'ben', 'cid'])
  const streams = new LiveStreams<View>({
    limits: { ofHolder, ofAll },
    onEnded: (why) => ended.push(why),
    heartbeatMs,
  })
  const server = createServer(({ url = '', headers }, response) => {
    const holder = String(headers['holder'] ?? 'ann')
    if (!streams.hasRoom(holder)) {
      response.writeHead(429).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    streams.open(response, {
      view: { of: url.slice(1) },
      holder,
      isInForce: () => holders.has(holder),
      lastEventId: headers['last-event-id']?.toString(),
    })
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(Object(server.address()).port))
  })
  onTestFinished(() => {
    streams.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    streams,
    ended,
    holders,
    open: (of: string, headers: Record<string, string> = {}): Promise<OpenView> =>
      openView(`http://127.0.0.1:${port}/${of}`, { headers }),
    send: (of: string, data: object, { isPaced = false } = {}) =>
      streams.send({
        name: 'attempt',
        isKept: true,
        isPaced,
        shownTo: (view) => (view.of === of ? data : undefined),
      }),
  }
}

const numbers = ({ events }: OpenView): unknown[] =>
  events.flatMap(({ name, data }) => (name === 'attempt' ? [data['n']] : []))

test('a view gets what concerns it, and what it has missed when it comes back', async () => {
  const { open, send } = await serve()
  const [crm, erp] = [await open('crm'), await open('erp')]
  for (const n of [1, 2]) send('crm', { n })
  send('erp', { n: 3 })
  await until('both have theirs', () => numbers(crm).length === 2 && numbers(erp).length === 1)
  expect([numbers(crm), numbers(erp)]).toEqual([[1, 2], [3]])
  expect(crm.events[0]).toMatchObject({ name: 'ready', data: { isComplete: true } })
  crm.close()
  send('crm', { n: 4 })
  send('erp', { n: 5 })
  const again = await open('crm', { 'last-event-id': crm.events.at(-1)?.id ?? '', holder: 'ben' })
  await until('it has what it missed', () => numbers(again).length === 1)
  expect(numbers(again)).toEqual([4])
  // Another process has other ids, and what is too old is gone.
  for (const id of ['abcdefabcdef.1', `${crm.events.at(-1)?.id.split('.')[0]}.999999`, 'nonsense']) {
    const other = await open('crm', { 'last-event-id': id, holder: 'cid' })
    await until('it says so', () => other.events.length > 0)
    expect(other.events[0]).toMatchObject({ name: 'ready', data: { isComplete: false } })
    other.close()
    await until('there is room again', async () => {
      const probe = await open('x', { holder: 'cid' })
      probe.close()
      return probe.status === 200
    })
  }
})

test('who does not read is dropped before it costs much, and others go on', async () => {
  const { open, send, ended, streams } = await serve()
  const [slow, quick] = [await open('crm'), await open('crm', { holder: 'ben' })]
  slow.pause()
  const text = 'x'.repeat(16_000)
  let n = 0
  await until(
    'the slow one is dropped',
    async () => {
      for (let one = 0; one < 20; one++) send('crm', { n: ++n, text })
      const sent = n
      await until('the quick one has read', () => numbers(quick).length >= sent)
      return ended.length > 0
    },
    { everyMs: 0 },
  )
  expect([ended, streams.count]).toEqual([['slow'], 1])
  send('crm', { n: 'last' })
  await until('the quick one goes on', () => numbers(quick).at(-1) === 'last')
  await until('the slow one is closed', () => {
    slow.resume()
    return slow.isClosed
  })
})

test('a view ends with its session, and says so', async () => {
  const { open, send, holders, streams } = await serve()
  const view = await open('crm')
  holders.delete('ann')
  send('crm', { n: 1 })
  await until('it is closed', () => view.isClosed)
  expect(view.events.slice(1)).toMatchObject([{ name: 'end', data: { reason: 'session' } }])
  // Also if nothing happens.
  const quiet = await open('crm', { holder: 'ben' })
  holders.delete('ben')
  await until('it is closed', () => quiet.isClosed)
  expect(streams.count).toBe(0)
})

test('there are so many views of one holder, and so many of all', async () => {
  const { open } = await serve({ ofHolder: 2, ofAll: 3 })
  const statusOf = async (holder: string): Promise<number> => (await open('crm', { holder })).status
  expect([await statusOf('ann'), await statusOf('ann'), await statusOf('ann')]).toEqual([200, 200, 429])
  expect([await statusOf('ben'), await statusOf('cid')]).toEqual([200, 429])
})

test('an idle view gets a sign of life, and the end of the server is told', async () => {
  const { open, streams } = await serve({ heartbeatMs: 100 })
  const view = await open('crm')
  await until('there is a comment', () => view.text.includes(': still here'))
  streams.close()
  await until('it is closed', () => view.isClosed)
  expect(view.events.at(-1)).toMatchObject({ name: 'end', data: { reason: 'stopping' } })
})

test('a view is told only so many paced events, then that it has missed some, and later again some', async () => {
  const { open, send } = await serve()
  const [busy, quiet] = [await open('crm'), await open('erp', { holder: 'ben' })]
  for (let n = 0; n < 300; n++) send('crm', { n }, { isPaced: true })
  send('erp', { n: 'own' }, { isPaced: true })
  send('crm', { n: 'not paced' })
  await until('it is told', () => busy.events.some(({ name }) => name === 'skipped'))
  expect(numbers(busy)).toEqual([...Array.from({ length: 60 }, (_, n) => n), 'not paced'])
  expect(numbers(quiet)).toEqual(['own'])
  await until('some are told again', () => {
    send('crm', { n: 'again' }, { isPaced: true })
    return numbers(busy).includes('again')
  })
  expect(quiet.events.map(({ name }) => name)).toEqual(['ready', 'attempt'])
  // Whoever comes back gets all that is kept.
  const again = await open('crm', { 'last-event-id': busy.events[60]?.id ?? '', holder: 'cid' })
  await until('it has what was skipped', () => numbers(again).includes('not paced'))
  expect(numbers(again)).toContain(299)
})

test('what several views show is written as JSON once', async () => {
  const { open, streams } = await serve()
  const views = [await open('crm'), await open('crm', { holder: 'ben' })]
  let written = 0
  const data = { toJSON: () => ({ n: ++written }) }
  streams.send({ name: 'attempt', shownTo: () => data })
  await until('both have it', () => views.every((view) => numbers(view).length === 1))
  expect(views.map(numbers)).toEqual([[1], [1]])
})
