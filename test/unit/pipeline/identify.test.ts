import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { Judgement } from '../../../src/message/judgement.ts'
import type { PipelineOptions } from '../../../src/pipeline/pipeline-ports.ts'
import { until } from '../../support/until.ts'
import { outlasting, parked } from './retried-identify.ts'
import {
  destinationOf,
  failed,
  hour,
  refused,
  stage,
  startMs,
  taken,
  TestRecord,
  throttled,
} from './stage.ts'

const property = { userId: 'u', spaceId: 'space', property: 'p' }
const timeout: Outcome = { kind: 'timeout' }

describe('an Identify', () => {
  test('goes to each destination of its space, and is settled when all have it', async () => {
    const all = stage({
      destinations: [
        destinationOf('crm'),
        destinationOf('ads'),
        destinationOf('other', { sources: ['shop'] }),
      ],
      sources: { space: { kind: 'audiences' }, shop: {} },
    })
    const record = all.identify('v1')
    expect(all.posted.map(({ to, body }) => `${to} ${body}`)).toEqual(['crm v1', 'ads v1'])
    await all.answer(taken)
    expect(record.settled).toBe(0)
    await all.answer(taken)
    expect(record.settled).toBe(1)
    expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
  })

  test.each([
    ['that the catalog does not have', {}],
    ['that is one of events', { space: { kind: 'events' } }],
  ] as const)('of a space %s is a dead letter, with all that a replay needs', async (_what, sources) => {
    const all = stage({ sources, destinations: [destinationOf('ads', { sources: ['shop'] })] })
    const record = all.identify('v1')
    expect(record.settled).toBe(0)
    await all.settle()
    expect(record.settled).toBe(1)
    expect(all.told).toEqual(['dead record: unknown_source'])
    expect(all.posted).toEqual([])
    expect(all.written).toMatchObject([
      {
        topic: 'dead-letters',
        partition: 2,
        key: Buffer.from('u'),
        value: Buffer.from('v1'),
        headers: {
          'source-id': 'space',
          'message-id': 'id v1',
          'message-type': 'identify',
          property: '["u","space","p"]',
          since: 'since v1',
          origin: 'memberships/2/0',
          reason: 'unknown_source',
        },
      },
    ])
    expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
  })

  test('of a space that is one of events now leaves its destinations behind', async () => {
    const all = stage({ sources: { space: { kind: 'events' } } })
    all.identify('v1')
    all.identify('v2', { mayHaveBegun: true, isSuperseded: true })
    await all.settle()
    expect(all.told).toEqual([
      'dead record: unknown_source',
      'behind crm space',
      'dead record: unknown_source',
      'behind crm space',
    ])
  })

  test('of a space that is switched off leaves its destinations behind', () => {
    const all = stage({ sources: { space: { enabled: false } } })
    expect(all.identify('v1').settled).toBe(1)
    expect(all.told).toEqual(['not routed: source_disabled', 'behind crm space'])
  })

  test('leaves a destination behind that is off, and goes to the others', () => {
    const all = stage({ destinations: [destinationOf('crm', { state: 'off' }), destinationOf('ads')] })
    all.identify('v1')
    expect(all.told).toEqual(['not routed: destination_off', 'behind crm space'])
    expect(all.posted.map(({ to }) => to)).toEqual(['ads'])
  })

  test('is not settled before it is written down that a destination is behind', async () => {
    const off = destinationOf('crm', { state: 'off' })
    for (const options of [
      { destinations: [off] },
      { destinations: [off, destinationOf('ads')] },
      { sources: { space: { kind: 'events' } } },
    ] as const) {
      const marked = Promise.withResolvers<void>()
      const all = stage({ ...options, marked })
      const record = all.identify('v1')
      if (all.posted.length > 0) await all.answer({ kind: 'answer', status: 200 })
      await all.settle()
      expect(record.settled).toBe(0)
      expect(all.pipeline.held.records).toBe(1)
      marked.resolve()
      await all.settle()
      expect(record.settled).toBe(1)
      expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
    }
  })

  test('that ends in the dead letters is not settled before it is written down that its destination is behind', async () => {
    const marked = Promise.withResolvers<void>()
    const all = stage({ marked, ladder: { waitsMs: [], thenMs: 60_000, limitMs: 0 } })
    const record = all.identify('v1')
    await all.answer({ kind: 'answer', status: 500 })
    await all.settle()
    expect(all.written.map(({ topic }) => topic)).toEqual(['dead-letters'])
    expect(record.settled).toBe(0)
    marked.resolve()
    await all.settle()
    expect(record.settled).toBe(1)
  })

  test('for a destination that is paused is parked, and says of which property it is', async () => {
    const all = stage({ destinations: [destinationOf('crm', { state: 'paused' })] })
    const record = all.identify('v1')
    await all.settle()
    expect(record.settled).toBe(1)
    expect(all.written).toMatchObject([
      {
        topic: 'retry.1m',
        partition: 2,
        key: Buffer.from('u'),
        value: Buffer.from('v1'),
        headers: {
          'source-id': 'space',
          'destination-id': 'crm',
          'message-id': 'id v1',
          'message-type': 'identify',
          property: '["u","space","p"]',
          since: 'since v1',
          'expires-at': '0',
          origin: 'memberships/2/0',
        },
      },
    ])
    expect(all.written[0]?.headers).not.toHaveProperty('uncertain')
  })
})

describe('of one property of a user, to one destination,', () => {
  test('one is under way, the newest of the others waits, and those between are superseded', async () => {
    const all = stage()
    const [first, second, third] = ['v1', 'v2', 'v3'].map((value) => all.identify(value))
    expect(all.bodies()).toEqual(['v1'])
    expect([first?.settled, second?.settled, third?.settled]).toEqual([0, 1, 0])
    await all.answer(taken)
    expect(all.bodies()).toEqual(['v3'])
    await all.answer(taken)
    expect(all.told).toEqual(['superseded crm v2', 'delivered crm v1', 'delivered crm v3'])
    expect(third?.settled).toBe(1)
    expect([all.pipeline.held.records, all.pipeline.inFlight, all.pipeline.queued]).toEqual([0, 0, 0])
  })

  test('one that waits holds no place in the lane', async () => {
    const all = stage({ destinations: [destinationOf('crm', { maxInFlight: 2 })] })
    all.identify('v1')
    all.identify('v2')
    all.identify('w1', { userId: 'w' })
    expect(all.bodies()).toEqual(['v1', 'w1'])
    expect([all.pipeline.inFlight, all.pipeline.queued]).toEqual([2, 1])
    await all.answer(taken, 'v1')
    expect(all.bodies()).toEqual(['w1', 'v2'])
  })

  test('a newer one takes the place in the lane of one that was not begun', async () => {
    const all = stage({ destinations: [destinationOf('crm', { maxInFlight: 1 })] })
    all.identify('w1', { userId: 'w' })
    const old = all.identify('v1')
    all.identify('x1', { userId: 'x' })
    all.identify('v2')
    await all.answer(taken)
    expect(all.bodies()).toEqual(['v2'])
    expect(old.settled).toBe(1)
    await all.answer(taken)
    await all.answer(taken)
    expect(all.told).toEqual([
      'delivered crm w1',
      'superseded crm v1',
      'delivered crm v2',
      'delivered crm x1',
    ])
    expect(all.pipeline.inFlight).toBe(0)
  })

  test('one that failed makes way for the next at once, and so does one that goes into the dead letters', async () => {
    const all = stage()
    for (const value of ['v1', 'v2']) all.identify(value)
    await all.answer(failed)
    all.identify('v3')
    expect(all.bodies()).toEqual(['v2'])
    await all.answer(refused)
    expect(all.bodies()).toEqual(['v3'])
    expect(all.written.map(({ topic }) => topic)).toEqual(['retry.1m', 'dead-letters'])
  })

  test('another user, property or destination waits for nothing', () => {
    const all = stage({ destinations: [destinationOf('crm'), destinationOf('ads')] })
    all.identify('v1')
    all.identify('w1', { userId: 'w' })
    all.identify('q1', { property: 'q' })
    expect(all.posted).toHaveLength(6)
  })

  test('one that comes back since the proxy is down keeps its turn, and a newer one takes its place', async () => {
    const all = stage()
    const old = all.identify('v1')
    all.identify('v2')
    await all.answer({ kind: 'proxy', code: 'ECONNREFUSED', isDown: true })
    expect([old.settled, all.pipeline.inFlight, all.pipeline.queued]).toEqual([0, 0, 2])
    await until('it is tried again', () => all.posted.length > 0)
    expect(all.bodies()).toEqual(['v2'])
    expect(old.settled).toBe(1)
    await all.answer(taken)
    expect([all.pipeline.inFlight, all.pipeline.queued, all.pipeline.held.records]).toEqual([0, 0, 0])
    all.pipeline.stop()
  })
})

describe('an attempt leaves an Identify', () => {
  const table: [Outcome, mayHaveArrived: boolean, uncertain: string | undefined][] = [
    [failed, false, '1'],
    [timeout, true, '1'],
    [{ kind: 'connection', code: 'ECONNRESET' }, true, '1'],
    [timeout, false, undefined],
    [{ kind: 'connection', code: 'ECONNREFUSED' }, false, undefined],
    [{ kind: 'dns', code: 'ENOTFOUND' }, false, undefined],
    [throttled, false, undefined],
  ]
  test.each(table)(
    'after %o, arrived %j, with the header uncertain: %j',
    async (outcome, arrived, uncertain) => {
      const all = stage()
      all.identify('v1')
      all.posted[0]?.answer(outcome, arrived)
      await all.settle()
      expect(all.written[0]?.topic).toBe('retry.1m')
      expect(all.written[0]?.headers['uncertain']).toBe(uncertain)
    },
  )

  test('uncertain for good, through all hops and into the dead letters', async () => {
    const all = stage()
    all.identify('v1')
    await all.answer(failed)
    all.retry(all.written[0])
    await all.settle()
    await all.answer(throttled)
    all.retry(all.written[1])
    await all.settle()
    await all.answer(refused)
    const letter = { property: '["u","space","p"]', since: 'since v1', uncertain: '1' }
    expect(all.written.map(({ topic }) => topic)).toEqual(['retry.1m', 'retry.10m', 'dead-letters'])
    for (const { headers } of all.written) expect(headers).toMatchObject(letter)
  })
})

test('an ordinary message carries nothing of that', async () => {
  const all = stage()
  const record = new TestRecord('events', 0)
  const value = Buffer.from('{"type":"track","userId":"u","event":"e"}')
  all.pipeline.accept(record, { key: null, value, headers: { 'source-id': 'space' } })
  await all.answer(failed)
  expect(Object.keys(all.written[0]?.headers ?? {})).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/property|since|uncertain/)]),
  )
  all.retry(all.written[0])
  await all.settle()
  expect(all.judged).toEqual([])
})

describe('a retry of an Identify that has come due', () => {
  test('is judged by all that is known of it, and sent', async () => {
    const all = await parked({ kind: 'send' }, { outcome: failed })
    expect(all.judged).toEqual([
      {
        unit: 2,
        sourceId: 'space',
        firstSeenMs: startMs,
        property: { ...property, since: 'since v1' },
        body: Buffer.from('v1'),
        isUncertain: true,
      },
    ])
    expect(all.bodies()).toEqual(['v1'])
    await all.answer(taken)
    expect(all.record.settled).toBe(1)
  })

  test.each(['superseded', 'suppressed'] as const)('is dropped and counted when it is %s', async (kind) => {
    const all = await parked({ kind })
    expect(all.bodies()).toEqual([])
    expect(all.record.settled).toBe(1)
    expect(all.told.at(-1)).toBe(`${kind} crm v1`)
    expect(all.written).toHaveLength(1)
    all.identify('v2')
    expect(all.bodies()).toEqual(['v2'])
  })

  test('is sent with the present value in its place, which it carries on', async () => {
    const current = {
      kind: 'send_current',
      messageId: 'id v9',
      body: Buffer.from('v9'),
      since: 'since v9',
    } as const
    const all = await parked(current, { outcome: failed })
    expect(all.bodies()).toEqual(['v9'])
    await all.answer(throttled)
    expect(all.written[1]).toMatchObject({
      topic: 'retry.10m',
      value: Buffer.from('v9'),
      headers: {
        'message-id': 'id v9',
        property: '["u","space","p"]',
        since: 'since v9',
        uncertain: '1',
        attempts: '2',
        origin: 'memberships/2/0',
      },
    })
  })

  test('waits for the end of what is under way, and is judged then', async () => {
    const all = stage()
    all.identify('v1')
    await all.answer(throttled)
    all.identify('v2')
    all.retry(all.written[0])
    await all.settle()
    expect(all.judged).toEqual([])
    expect(all.bodies()).toEqual(['v2'])
    await all.answer(taken)
    expect(all.judged).toHaveLength(1)
    expect(all.bodies()).toEqual(['v1'])
  })

  test('holds a newer value up while it is judged, and makes way for it after', async () => {
    const judging = Promise.withResolvers<Judgement>()
    const all = await parked({ kind: 'send' }, { options: { judge: () => judging.promise } })
    all.identify('v2')
    expect(all.bodies()).toEqual([])
    judging.resolve({ kind: 'send' })
    await all.settle()
    expect(all.bodies()).toEqual(['v2'])
    expect(all.record.settled).toBe(1)
    expect(all.told).toContain('superseded crm v1')
  })

  test('that a newer value replaces leaves its uncertainty to that', async () => {
    const judging = Promise.withResolvers<Judgement>()
    const all = await parked({ kind: 'send' }, { outcome: failed, options: { judge: () => judging.promise } })
    all.identify('v2')
    judging.resolve({ kind: 'send' })
    await all.settle()
    await all.answer(throttled, 'v2')
    expect(all.written[1]?.headers).toMatchObject({ since: 'since v2', uncertain: '1' })
  })

  test('is judged before its destination is looked at', async () => {
    const off = stage({
      destinations: [destinationOf('crm', { state: 'off' })],
      judge: async () => ({ kind: 'superseded' }),
    })
    const { headers } = (await parked({ kind: 'send' })).written[0] ?? { headers: {} }
    off.retry({ topic: 'retry.1m', partition: 2, key: null, value: Buffer.from('v1'), headers })
    await off.settle()
    expect(off.told).toEqual(['superseded crm v1'])
  })
})

describe('an Identify that was taken, though something of it may still be done late,', () => {
  const current = {
    kind: 'send_current',
    messageId: 'id v2',
    body: Buffer.from('v2'),
    since: 'since v2',
  } as const

  test('waits on the first rung, and makes way for a newer one at once', async () => {
    const all = stage()
    const record = all.identify('v1')
    all.identify('v2')
    all.posted[0]?.answer(taken, true)
    await all.settle()
    expect(all.told).toEqual(['delivered crm v1', 'parked crm v1: uncertain'])
    expect(all.written).toMatchObject([
      {
        topic: 'retry.1m',
        headers: { uncertain: '1', delivered: '1', since: 'since v1', 'expires-at': '0' },
      },
    ])
    expect(record.settled).toBe(1)
    expect(all.bodies()).toEqual(['v2'])
  })

  test('is done with where nothing newer holds by then', async () => {
    const all = await outlasting({ kind: 'send' })
    expect(all.judged).toMatchObject([{ isUncertain: true, property: { since: 'since v1' } }])
    expect([all.record.settled, all.bodies()]).toEqual([1, []])
    expect(all.told).toEqual(['delivered crm v1', 'parked crm v1: uncertain'])
    expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
  })

  test('is sent with the value that holds by then, which is a delivery like any other', async () => {
    const all = await outlasting(current)
    expect(all.bodies()).toEqual(['v2'])
    await all.answer(throttled)
    expect(all.written[1]).toMatchObject({
      topic: 'retry.10m',
      headers: { since: 'since v2', uncertain: '1' },
    })
    expect(all.written[1]?.headers).not.toHaveProperty('delivered')
    expect(all.written[1]?.headers['expires-at']).toBe(String(startMs + 4 * hour))
  })

  test('comes to an end where all that is sent in its place is lost first', async () => {
    const all = await outlasting(current)
    all.posted[0]?.answer(taken, true)
    await all.settle()
    const last = all.retry(all.written[1])
    await all.settle()
    expect(all.written[1]).toMatchObject({
      topic: 'retry.1m',
      headers: { since: 'since v2', delivered: '1' },
    })
    expect([last.settled, all.bodies(), all.written.length]).toEqual([1, [], 2])
  })

  test('waits on the first rung after tries that failed, too', async () => {
    const all = await outlasting({ kind: 'send' }, [throttled, failed])
    expect(all.written.map(({ topic }) => topic)).toEqual(['retry.1m', 'retry.10m', 'retry.1m'])
    expect(all.letter?.headers).toMatchObject({ delivered: '1', attempts: '3', 'expires-at': '0' })
  })

  test('leaves its doubt to a newer one that comes meanwhile', async () => {
    const judging = Promise.withResolvers<Judgement>()
    const all = stage({ judge: () => judging.promise })
    all.identify('v1')
    all.posted[0]?.answer(taken, true)
    await all.settle()
    all.retry(all.written[0])
    all.identify('v2')
    judging.resolve(current)
    await all.settle()
    await all.answer(throttled, 'v2')
    expect(all.written[1]?.headers).toMatchObject({ since: 'since v2', uncertain: '1' })
  })

  test('is not counted again where a newer one takes its place in the line', async () => {
    const all = stage()
    all.identify('v1')
    all.posted[0]?.answer(taken, true)
    await all.settle()
    all.identify('v2')
    const due = all.retry(all.written[0])
    all.identify('v3')
    expect(due.settled).toBe(1)
    expect(all.told).toEqual(['delivered crm v1', 'parked crm v1: uncertain'])
  })

  test('is no doubt of an answer to all that was sent, nor of an ordinary message', async () => {
    const all = stage()
    all.identify('v1')
    await all.answer(taken)
    const value = Buffer.from('{"type":"track","userId":"u","event":"e"}')
    const record = new TestRecord('events', 0)
    all.pipeline.accept(record, { key: null, value, headers: { 'source-id': 'space' } })
    all.posted[0]?.answer(taken, true)
    await all.settle()
    expect([record.settled, all.written]).toEqual([1, []])
  })

  test('may be so at another hook than the one that took it', async () => {
    const hooks = ['first', 'second'].map((id) => ({
      id,
      origin: `https://${id}.example`,
      path: '/',
      headers: [],
    }))
    const all = stage({ destinations: [destinationOf('crm', { hooks })] })
    all.identify('v1')
    all.posted[0]?.answer(timeout)
    all.posted[0]?.answer(taken)
    await all.settle()
    expect(all.told).toEqual(['delivered crm v1', 'parked crm v1: uncertain'])
  })
})

const mayBeDeleted: PipelineOptions['mayBeDeleted'] = ({ userId }, unit) => userId === 'u' && unit === 2

describe('an Identify that was taken when its user may have been deleted', () => {
  const deletion = {
    kind: 'send_current',
    messageId: 'delete-1',
    body: Buffer.from('{"type":"delete","userId":"u"}'),
    since: 'since v1',
  } as const

  test('is followed by the delete a rung later where that is so', async () => {
    const all = stage({ mayBeDeleted, judge: async () => deletion })
    const record = all.identify('v1')
    await all.answer(taken)
    expect(all.told).toEqual(['delivered crm v1', 'parked crm v1: uncertain'])
    expect(record.settled).toBe(1)
    const due = all.retry(all.written[0])
    await all.settle()
    expect(all.bodies()).toEqual([String(deletion.body)])
    await all.answer(taken)
    expect([due.settled, all.written.length]).toEqual([1, 1])
    expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
  })

  test('is done with where that is not so', async () => {
    const all = stage({ mayBeDeleted })
    const record = all.identify('v1')
    await all.answer(taken)
    expect(all.judged).toHaveLength(1)
    expect([record.settled, all.told, all.written]).toEqual([1, ['delivered crm v1'], []])
  })

  test('holds a newer value up until that is known', async () => {
    const judging = Promise.withResolvers<Judgement>()
    const all = stage({ mayBeDeleted, judge: () => judging.promise })
    all.identify('v1')
    all.identify('v2')
    await all.answer(taken)
    expect(all.bodies()).toEqual([])
    judging.resolve({ kind: 'send' })
    await all.settle()
    expect(all.bodies()).toEqual(['v2'])
  })

  test('waits to be asked by the next owner where it belongs to another by then', async () => {
    const all = stage({ mayBeDeleted })
    const record = all.identify('v1')
    record.isAbandoned = true
    await all.answer(taken)
    expect(all.written).toMatchObject([{ topic: 'retry.1m', headers: { uncertain: '1', delivered: '1' } }])
    expect(record.settled).toBe(1)
  })

  test('of another user is not asked for', async () => {
    const all = stage({ mayBeDeleted })
    const record = all.identify('w1', { userId: 'w' })
    await all.answer(taken)
    expect([record.settled, all.judged]).toEqual([1, []])
  })
})

describe('a retry of an ordinary message', () => {
  const value = Buffer.from('{"type":"track","userId":"u","event":"e"}')
  async function track(type: 'track' | 'delete', needs: boolean) {
    const all = stage({
      judge: async () => ({ kind: 'suppressed' }),
      needsJudging: (sourceId, unit, hasProperty) =>
        needs && sourceId === 'space' && unit === 2 && !hasProperty,
    })
    const body = type === 'delete' ? Buffer.from('{"type":"delete","userId":"u"}') : value
    all.pipeline.accept(new TestRecord('events', 0), {
      key: null,
      value: body,
      headers: { 'source-id': 'space' },
    })
    await all.answer(throttled)
    const record = all.retry(all.written[0])
    return { all, record }
  }

  test('is judged when that is asked for', async () => {
    const { all, record } = await track('track', true)
    await all.settle()
    expect(all.judged).toMatchObject([{ unit: 2, sourceId: 'space', isUncertain: false }])
    expect(all.judged[0]).not.toHaveProperty('property')
    expect([record.settled, all.posted.length]).toEqual([1, 0])
    expect(all.told.at(-1)).toMatch(/^suppressed crm/)
  })

  test('goes on at once when it is not', async () => {
    const { all } = await track('track', false)
    expect([all.judged.length, all.posted.length]).toEqual([0, 1])
  })

  test('is never judged when it is a delete', async () => {
    const { all } = await track('delete', true)
    expect([all.judged.length, all.posted.length]).toEqual([0, 1])
  })
})

describe('a partition that has moved', () => {
  test('takes those along that wait for one under way, and that one comes to its end', async () => {
    const all = stage()
    const [first, second] = [all.identify('v1'), all.identify('v2')]
    for (const record of [first, second]) record.isAbandoned = true
    all.pipeline.letGoAbandoned()
    expect([second.givenBack, second.settled, first.settled]).toEqual([1, 0, 0])
    const again = all.identify('v2')
    expect(all.bodies()).toEqual(['v1'])
    await all.answer(taken)
    expect(first.settled).toBe(1)
    expect(all.bodies()).toEqual(['v2'])
    await all.answer(taken)
    expect([again.settled, all.pipeline.held.records]).toEqual([1, 0])
  })

  test.each(['superseded', 'fails'])('takes a retry along that is being judged: %s', async (end) => {
    const judging = Promise.withResolvers<Judgement>()
    const all = await parked({ kind: 'send' }, { options: { judge: () => judging.promise } })
    all.record.isAbandoned = true
    if (end === 'fails') judging.reject(new Error('the store is closed'))
    else judging.resolve({ kind: 'superseded' })
    await all.settle()
    expect([all.record.givenBack, all.record.settled, all.pipeline.held.records]).toEqual([1, 0, 0])
  })

  test('keeps one that has begun for another destination from being repeated there', async () => {
    const all = stage({ destinations: [destinationOf('crm'), destinationOf('ads')] })
    all.identify('v1')
    await all.answer(taken, 'v1')
    const second = all.identify('v2')
    expect(all.posted.map(({ to, body }) => `${to} ${body}`)).toEqual(['ads v1', 'crm v2'])
    second.isAbandoned = true
    all.pipeline.letGoAbandoned()
    expect(all.told.at(-1)).toBe('parked ads v2: handover')
    while (all.posted.length > 0) all.posted[0]?.answer(taken)
    await all.settle()
    expect([second.settled, second.givenBack]).toEqual([1, 0])
  })

  test('leaves one behind where the next owner delivers all of it again', async () => {
    const all = stage({ destinations: [destinationOf('crm'), destinationOf('ads')] })
    all.identify('v1')
    await all.answer(taken, 'v1')
    const second = all.identify('v2')
    Object.assign(second, { isAbandoned: true, isElsewhere: true })
    all.pipeline.letGoAbandoned()
    while (all.posted.length > 0) all.posted[0]?.answer(taken)
    await all.settle()
    expect(all.written).toEqual([])
    expect([second.settled, second.givenBack]).toEqual([0, 1])
  })
})

describe('when it stops', () => {
  test('what waits stays behind, and what is under way comes to its end', async () => {
    const all = stage()
    const [first, second] = [all.identify('v1'), all.identify('v2')]
    const drained = all.pipeline.drain()
    expect([second.givenBack, all.pipeline.queued]).toEqual([1, 0])
    await all.answer(taken)
    await drained
    expect([first.settled, all.pipeline.held.records]).toEqual([1, 0])
    all.pipeline.stop()
  })

  test('a retry that is being judged stays behind, and is waited for', async () => {
    const judging = Promise.withResolvers<Judgement>()
    const all = await parked({ kind: 'send' }, { options: { judge: () => judging.promise } })
    const drained = all.pipeline.drain()
    judging.resolve({ kind: 'send' })
    await drained
    expect([all.record.givenBack, all.posted.length, all.pipeline.held.records]).toEqual([1, 0, 0])
    all.pipeline.stop()
  })

  test('one whose turn has come just then stays behind too', async () => {
    const all = stage()
    all.identify('v1')
    const second = all.identify('v2')
    all.posted[0]?.answer(taken)
    await all.pipeline.drain()
    expect([second.givenBack, all.posted.length, all.pipeline.held.records]).toEqual([1, 0, 0])
    all.pipeline.stop()
  })

  test('one that has become uncertain waits on a retry topic: its record does not know', async () => {
    const all = stage()
    all.identify('v1')
    await all.answer(failed)
    all.identify('v2')
    all.retry(all.written[0])
    const third = all.identify('v3')
    const drained = all.pipeline.drain()
    await all.answer(taken, 'v2')
    await drained
    expect([third.settled, third.givenBack]).toEqual([1, 0])
    expect(all.written[1]).toMatchObject({
      topic: 'retry.1m',
      headers: { since: 'since v3', uncertain: '1' },
    })
    all.pipeline.stop()
  })
})

describe('what an owner before may have begun', () => {
  test('is sent again, as uncertain', async () => {
    const all = stage()
    all.identify('v1', { mayHaveBegun: true })
    await all.answer(throttled)
    expect(all.written[0]?.headers).toMatchObject({ uncertain: '1' })
  })

  test('is not sent when it is superseded: it waits on the first rung for its late effects', async () => {
    const all = stage()
    const record = all.identify('v1', { mayHaveBegun: true, isSuperseded: true })
    await all.settle()
    expect([record.settled, all.posted.length]).toEqual([1, 0])
    expect(all.told).toEqual(['parked crm v1: uncertain'])
    expect(all.written).toMatchObject([{ topic: 'retry.1m', headers: { uncertain: '1', attempts: '0' } }])
  })

  test('leaves a destination behind that is off when it is superseded: its late effect may be the last', () => {
    const all = stage({ destinations: [destinationOf('crm', { state: 'off' })] })
    expect(all.identify('v1', { mayHaveBegun: true, isSuperseded: true }).settled).toBe(1)
    expect(all.told).toEqual(['not routed: destination_off', 'behind crm space'])
  })

  test('is judged as uncertain when it is a retry', async () => {
    const all = await parked({ kind: 'send' })
    await all.answer(taken)
    all.retry(all.written[0], { mayHaveBegun: true })
    await all.settle()
    expect(all.judged.map(({ isUncertain }) => isUncertain)).toEqual([false, true])
  })

  test('stays uncertain with the owner after this one', async () => {
    const all = stage({ destinations: [destinationOf('crm', { maxInFlight: 1 })] })
    all.identify('w1', { userId: 'w' })
    const record = all.identify('v1', { mayHaveBegun: true })
    record.isAbandoned = true
    all.pipeline.letGoAbandoned()
    await all.settle()
    expect([record.settled, record.givenBack]).toEqual([1, 0])
    expect(all.written).toMatchObject([{ headers: { uncertain: '1' } }])
  })
})

describe('a destination is behind', () => {
  test('when an Identify has failed for good', async () => {
    const all = stage()
    all.identify('v1')
    await all.answer(refused)
    expect(all.told).toEqual(['dead crm: failed_for_good', 'behind crm space'])
    expect(all.written).toMatchObject([{ topic: 'dead-letters', headers: { property: '["u","space","p"]' } }])
  })

  test('when its time is up', async () => {
    const all = stage({ ladder: { waitsMs: [hour], thenMs: hour, limitMs: 1 } })
    all.identify('v1')
    await all.answer(failed)
    expect(all.told).toEqual(['dead crm: expired', 'behind crm space'])
  })

  test('when it is off by the time that a retry is due', async () => {
    const { headers } = (await parked({ kind: 'send' })).written[0] ?? { headers: {} }
    const all = stage({ destinations: [destinationOf('crm', { state: 'off' })] })
    all.retry({ topic: 'retry.1m', partition: 2, key: null, value: Buffer.from('v1'), headers })
    await all.settle()
    expect(all.told).toEqual(['dead crm: destination_off', 'behind crm space'])
  })

  test('when its retry topic does not take it', async () => {
    const all = stage({
      outlet: { produce: async ({ topic }) => (topic === 'dead-letters' ? 'acknowledged' : 'refused') },
    })
    all.identify('v1')
    await all.answer(failed)
    expect(all.told.slice(1)).toEqual(['dead crm: record_too_large', 'behind crm space'])
  })

  test('when it was removed by the time that a retry is due: it may come back', async () => {
    const { headers } = (await parked({ kind: 'send' })).written[0] ?? { headers: {} }
    const all = stage({ destinations: [] })
    all.retry({ topic: 'retry.1m', partition: 2, key: null, value: Buffer.from('v1'), headers })
    await all.settle()
    expect(all.told).toEqual(['dead crm: destination_removed', 'behind crm space'])
  })

  test.each([
    ['was removed', []],
    ['was disconnected from the space', [destinationOf('crm', { sources: ['shop'] })]],
  ])(
    'when it %s, and a retry of it is superseded: the newer value went to others',
    async (_, destinations) => {
      const { headers } = (await parked({ kind: 'send' })).written[0] ?? { headers: {} }
      const all = stage({ destinations, judge: async () => ({ kind: 'superseded' }) })
      all.retry({ topic: 'retry.1m', partition: 2, key: null, value: Buffer.from('v1'), headers })
      await all.settle()
      expect(all.told).toEqual(['behind crm space', 'superseded crm v1'])
    },
  )

  test('not when a retry is superseded by a value that it gets', async () => {
    const { headers } = (await parked({ kind: 'send' })).written[0] ?? { headers: {} }
    const all = stage({ judge: async () => ({ kind: 'superseded' }) })
    all.retry({ topic: 'retry.1m', partition: 2, key: null, value: Buffer.from('v1'), headers })
    await all.settle()
    expect(all.told).toEqual(['superseded crm v1'])
  })

  test('not by an ordinary message', async () => {
    const all = stage()
    const value = Buffer.from('{"type":"track","userId":"u","event":"e"}')
    all.pipeline.accept(new TestRecord('events', 0), { key: null, value, headers: { 'source-id': 'space' } })
    await all.answer(refused)
    expect(all.told).toEqual(['dead crm: failed_for_good'])
  })
})

const deletionOf = (...sources: string[]) => ({
  userId: 'u',
  deletes: sources.map((sourceId) => ({
    sourceId,
    messageId: `delete of ${sourceId}`,
    body: Buffer.from(`{"type":"delete","context":{"sourceId":"${sourceId}"}}`),
  })),
})

describe('a delete', () => {
  test('goes to each destination of each of the sources that is not off, even if the source is', async () => {
    const all = stage({
      sources: { space: {}, shop: { enabled: false }, app: {} },
      destinations: [
        destinationOf('crm', { sources: ['space', 'shop'] }),
        destinationOf('ads', { sources: ['shop'], state: 'off' }),
        destinationOf('lab', { sources: ['shop'], state: 'paused' }),
        destinationOf('web', { sources: ['app'] }),
      ],
    })
    const record = new TestRecord('deletions', 0)
    const request = deletionOf('space', 'gone', 'shop')
    const [ofSpace, , ofShop] = request.deletes
    all.pipeline.acceptDelete(record, request)
    expect(all.posted.map(({ to, body }) => [to, body])).toEqual([
      ['crm', String(ofSpace?.body)],
      ['crm', String(ofShop?.body)],
    ])
    await all.answer(taken)
    await all.answer(failed)
    expect(all.told.map((line) => line.replace(/ \{.*\}/, ''))).toEqual([
      'unknown source gone',
      'not routed: destination_off',
      'parked lab: paused',
      'delivered crm',
      'parked crm: failed',
    ])
    expect(all.written).toMatchObject([
      {
        key: Buffer.from('u'),
        headers: { 'destination-id': 'lab', 'source-id': 'shop', 'message-type': 'delete' },
      },
      {
        value: ofShop?.body,
        headers: { 'destination-id': 'crm', 'source-id': 'shop', 'message-id': 'delete of shop' },
      },
    ])
    expect(record.settled).toBe(1)
  })

  test('that nobody gets is settled', () => {
    const all = stage()
    const record = new TestRecord('deletions', 0)
    all.pipeline.acceptDelete(record, deletionOf('gone'))
    expect(record.settled).toBe(1)
  })
})

test('a record that is refused is a dead letter with its source and the reason', async () => {
  const all = stage()
  const record = new TestRecord('audience-changes', 7)
  const content = {
    key: Buffer.from('u'),
    value: Buffer.from('{}'),
    headers: { 'source-id': 'space', trace: 'x' },
  }
  all.pipeline.refuse(record, content, 'not_json', 'why')
  await all.settle()
  expect(record.settled).toBe(1)
  expect(all.written).toMatchObject([
    {
      topic: 'dead-letters',
      partition: 2,
      key: content.key,
      value: content.value,
      headers: {
        'source-id': 'space',
        reason: 'not_json',
        detail: 'why',
        origin: 'audience-changes/2/7',
        'first-seen': String(startMs),
      },
    },
  ])
})
