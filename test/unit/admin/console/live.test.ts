import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type LiveEnd, LiveStreams } from '../../../../src/admin/console/live.ts'
import { openView, type OpenView } from '../../../support/events.ts'
import { until } from '../../../support/until.ts'

type View = { readonly destination: string }

/** Serves live views. The path of a request is what it shows. */
async function serve({ ofHolder = 2, ofShare = 5, ofAll = 5, heartbeatMs = 60_000, everyMs = 50 } = {}) {
  const ended: LiveEnd[] = []
  /** Destinations that nobody may see any more. */
  const lost = new Set<string>()
  const responses: ServerResponse[] = []
  const holders = new Set(['ann', 'ben', 'cid'])
  const streams = new LiveStreams<View>({
    limits: { ofHolder, ofShare, ofAll },
    stillSees: (_view, { destination = '' }) => !lost.has(destination),
    onEnded: (why) => ended.push(why),
    heartbeatMs,
    everyMs,
  })
  const server = createServer(({ url = '', headers }, response) => {
    const who = { holder: String(headers['holder'] ?? 'ann'), share: headers['share']?.toString() }
    if (!streams.hasRoom(who)) {
      response.writeHead(429).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    responses.push(response)
    const tell = streams.open(response, {
      ...who,
      view: { destination: url.slice(1) },
      key: url,
      isInForce: () => holders.has(who.holder),
      lastEventId: headers['last-event-id']?.toString(),
    })
    if (headers['greeting'] !== undefined) tell('destination', { n: headers['greeting'] })
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
    port,
    ended,
    holders,
    lost,
    responses,
    open: (of: string, headers: Record<string, string> = {}): Promise<OpenView> =>
      openView(`http://127.0.0.1:${port}/${of}`, { headers }),
    send: (destination: string, data: object, { isPaced = false } = {}) =>
      streams.send({ name: 'attempt', about: { destination }, isKept: true, isPaced, shownTo: () => data }),
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
  // Another process has other ids, what is too old is gone, and of what nobody looked at nothing is known.
  const ids = ['abcdefabcdef.1', `${crm.events.at(-1)?.id.split('.')[0]}.999999`, 'nonsense']
  const asked = [...ids.map((id) => ['crm', id] as const), ['other', crm.events.at(-1)?.id ?? ''] as const]
  for (const [of, id] of asked) {
    const other = await open(of, { 'last-event-id': id, holder: 'cid' })
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
  expect(busy.events.at(-1)).toMatchObject({ name: 'skipped', data: { count: 240 } })
  await until('the other is told too', () => numbers(quiet).length > 0)
  expect(numbers(quiet)).toEqual(['own'])
  let sent = 0
  await until('some are told again', () => {
    send('crm', { n: 'again' }, { isPaced: true })
    sent++
    return numbers(busy).includes('again')
  })
  expect(quiet.events.map(({ name }) => name)).toEqual(['ready', 'attempt'])
  // Whoever comes back gets what the others were told meanwhile.
  const before = busy.events[60]?.id ?? ''
  const again = await open('crm', { 'last-event-id': before, holder: 'cid' })
  await until('it has what it missed', () => numbers(again).includes('again'))
  expect(numbers(again).slice(0, 2)).toEqual(['not paced', 'again'])
  await until('all are accounted for', () => {
    const told = busy.events.flatMap(({ name, data }) => (name === 'skipped' ? [Number(data['count'])] : []))
    return told.reduce((sum, count) => sum + count, 0) + numbers(busy).length === 301 + sent
  })
})

test('what does not concern a view is neither shown nor counted', async () => {
  const { open, streams } = await serve()
  const view = await open('crm')
  const send = (destination: string, n: number, isOwn: boolean): void =>
    streams.send({
      name: 'attempt',
      about: { destination },
      isPaced: true,
      concerns: () => isOwn,
      shownTo: () => (isOwn ? { n } : undefined),
    })
  // The first 60 are shown.
  for (let n = 0; n < 160; n++) {
    send('crm', n, n % 2 === 0)
    send('erp', n, true)
  }
  await until('it is told', () => view.events.some(({ name }) => name === 'skipped'))
  expect(numbers(view).length).toBe(60)
  expect(view.events.at(-1)).toMatchObject({ name: 'skipped', data: { count: 20 } })
})

test('a view gets what others that show the same are told', async () => {
  const { open, streams } = await serve()
  const views = [
    await open('crm'),
    await open('crm', { holder: 'ben' }),
    await open('erp', { holder: 'cid' }),
  ]
  expect([...streams.shown()].map(({ key }) => key)).toEqual(['/crm', '/erp'])
  streams.tell('/crm', 'destination', { id: 'crm' })
  streams.tell('/erp', 'destination', { id: 'erp' })
  await until('all have it', () => views.every(({ events }) => events.length === 2))
  expect(views.map(({ events }) => events[1]?.data['id'])).toEqual(['crm', 'crm', 'erp'])
})

test('what several views show is written as JSON once', async () => {
  const { open, streams } = await serve()
  const views = [await open('crm'), await open('crm', { holder: 'ben' })]
  let written = 0
  const data = { toJSON: () => ({ n: ++written }) }
  streams.send({ name: 'attempt', about: { destination: 'crm' }, shownTo: () => data })
  await until('both have it', () => views.every((view) => numbers(view).length === 1))
  expect(views.map(numbers)).toEqual([[1], [1]])
})

test('those who share a limit have no more together, and others still have room', async () => {
  const { open } = await serve({ ofShare: 2 })
  const statusOf = async (holder: string, share?: string): Promise<number> =>
    (await open('crm', { holder, ...(share !== undefined && { share }) })).status
  expect([
    await statusOf('ann', 'acme'),
    await statusOf('ben', 'acme'),
    await statusOf('cid', 'acme'),
  ]).toEqual([200, 200, 429])
  expect([await statusOf('ann', 'globex'), await statusOf('cid')]).toEqual([200, 200])
})

test('a view that waits behind another on its connection takes no place, for as long as nobody can close it', async () => {
  const { port, streams, responses, open } = await serve({ ofHolder: 9, ofAll: 9 })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.resume()
  socket.write('GET /crm HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5))
  await until('all were asked for', () => responses.length === 5)
  expect(streams.count).toBe(1)
  socket.destroy()
  await until('it is closed', () => streams.count === 0)
  expect((await open('crm')).status).toBe(200)
})

test('who comes back is told what was missed, without what they may not see any more', async () => {
  const { open, send, lost } = await serve()
  const view = await open('crm')
  send('crm', { n: 1 })
  await until('it is told', () => numbers(view).length === 1)
  const seen = view.events.at(-1)?.id ?? ''
  send('crm', { n: 2 })
  await until('it is told this too', () => numbers(view).length === 2)
  lost.add('crm')
  const again = await open('crm', { 'last-event-id': seen, holder: 'ben' })
  send('crm', { n: 3 })
  await until('it goes on', () => numbers(again).length > 0)
  expect(numbers(again)).toEqual([3])
})

test('what was gathered before the server stops is for those whose session is in force', async () => {
  // Nothing is sent before the end.
  const { open, send, streams, holders } = await serve({ everyMs: 3_600_000 })
  const [ended, other] = [await open('crm'), await open('crm', { holder: 'ben' })]
  send('crm', { n: 1 })
  holders.delete('ann')
  streams.close()
  await until('both are closed', () => ended.isClosed && other.isClosed)
  expect([ended, other].map(numbers)).toEqual([[], [1]])
  expect([ended, other].map(({ events }) => events.at(-1)?.data['reason'])).toEqual(['session', 'stopping'])
})

test('what one view is told at its beginning is told to no other, and is nothing to come back to', async () => {
  const { open, send } = await serve()
  const first = await open('crm')
  const greeted = await open('crm', { holder: 'ben', greeting: 'hello' })
  send('crm', { n: 1 })
  await until('both are told', () => [first, greeted].every((view) => numbers(view).length === 1))
  expect(first.events.map(({ name }) => name)).toEqual(['ready', 'attempt'])
  expect(greeted.events.map(({ name, id }) => `${name}${id === '' ? ', no id' : ''}`)).toEqual([
    'ready, no id',
    'destination, no id',
    'attempt',
  ])
})

test('what waits for all views that do not read is never more than 16 MiB', async () => {
  const views = 40
  const { open, send, ended, responses } = await serve({ ofHolder: views, ofShare: views, ofAll: views })
  const slow = await Promise.all(Array.from({ length: views }, () => open('crm')))
  for (const view of slow) view.pause()
  const text = 'x'.repeat(400_000)
  let most = 0
  await until(
    'some are dropped',
    () => {
      const left = responses.filter(({ writableEnded }) => !writableEnded)
      most = Math.max(
        most,
        left.reduce((sum, { writableLength }) => sum + writableLength, 0),
      )
      send('crm', { n: 1, text })
      return ended.length > views / 4
    },
    { everyMs: 60 },
  )
  expect(most).toBeLessThanOrEqual(16 * 1_024 * 1_024)
  expect(new Set(ended)).toEqual(new Set(['slow']))
})

test('the ids of a view say nothing of how much others are told', async () => {
  const { open, send } = await serve()
  const [crm, erp] = [await open('crm'), await open('erp', { holder: 'ben' })]
  send('crm', { n: 1 })
  for (let n = 0; n < 50; n++) send('erp', { n })
  send('crm', { n: 2 })
  await until('both are told', () => numbers(crm).length === 2 && numbers(erp).length === 50)
  const ids = [crm, erp].map(({ events }) => events.slice(1).map(({ id }) => id.split('.')))
  expect(ids[0]?.map(([, sequence]) => sequence)).toEqual(['1', '2'])
  expect(ids[0]?.[0]?.[0]).not.toBe(ids[1]?.[0]?.[0])
})
