import { describe, expect, test } from 'vitest'
import { CommitWatch } from '../../../drill/backward-commits.ts'
import type { Evidence } from '../../../drill/evidence.ts'
import { judge } from '../../../drill/oracle.ts'
import { readOwners, readTenants } from '../../../drill/owners.ts'
import { countUncommitted } from '../../../drill/repeats.ts'
import type { Delivery } from '../../support/delivery-book.ts'
import { flawless, secondMs, startMs } from './evidence.ts'

/** Returns the promises that are broken, and the evidence that is against them. */
function broken(evidence: Evidence): { promises: string[]; against: string[] } {
  const failed = judge(evidence).checks.filter(({ isKept }) => !isKept)
  return {
    promises: failed.map(({ promise }) => promise),
    against: failed.flatMap(({ against }) => against),
  }
}

function causesOf(evidence: Evidence): string[] {
  return judge(evidence).repeats.map(({ cause }) => cause)
}

function taken(times: number, by: readonly string[], isAnswered = true): Delivery[] {
  return Array.from({ length: times }, (_, index) => ({
    destination: 'crm',
    messageId: 'shop-0',
    worker: by[index] ?? 'w1',
    arrivedMs: startMs + 2 * secondMs + index * secondMs,
    isAnswered: index === times - 1 || isAnswered,
  }))
}

function withDelivery(deliveries: Delivery[], more: Partial<Evidence> = {}): Evidence {
  const evidence = flawless()
  return {
    ...evidence,
    ...more,
    deliveries: new Map([...evidence.deliveries, ['crm/shop-0', deliveries]]),
  }
}

test('passes a drill in which everything was as it should be', () => {
  expect(broken(flawless())).toEqual({ promises: [], against: [] })
})

describe('a gap', () => {
  test('is a message that an endpoint never had', () => {
    const { deliveries, ...rest } = flawless()
    const left = new Map([...deliveries].filter(([key]) => key !== 'crm/shop-0'))
    expect(broken({ ...rest, deliveries: left }).against).toEqual(['crm/shop-0'])
  })

  test('is one that was never answered', () => {
    const unanswered = taken(1, []).map((delivery) => ({ ...delivery, isAnswered: false }))
    expect(broken(withDelivery(unanswered)).against).toEqual(['crm/shop-0'])
  })

  test('is one for an endpoint that is gone, which is not in the dead letters', () => {
    expect(broken({ ...flawless(), deadLetters: [] }).against).toEqual(['legacy/till-0'])
  })
})

test('a dead letter of an endpoint that takes all is told, with its reason', () => {
  const evidence = flawless()
  const letter = { destination: 'crm', messageId: 'shop-0', reason: 'expired', detail: 'after 4 h' }
  expect(broken({ ...evidence, deadLetters: [...evidence.deadLetters, letter] }).against).toEqual([
    'crm/shop-0: expired (after 4 h)',
  ])
})

test.each([
  ['sync_outdated', []],
  ['bad_property_name', ['/: bad_property_name (of an audience)']],
])('a dead letter of an audience with the reason %s has %j against it', (reason, against) => {
  const evidence = flawless()
  const letter = { destination: '', messageId: '', reason, detail: 'of an audience' }
  expect(broken({ ...evidence, deadLetters: [...evidence.deadLetters, letter] }).against).toEqual(against)
})

describe('a message that came twice', () => {
  const span = { fromMs: startMs + 2.5 * secondMs, toMs: startMs + 2.6 * secondMs }
  const kill = { kind: 'kill', worker: 'w1', ...span } as const
  const brokerKill = {
    lane: 'brokers',
    fault: { kind: 'kill broker', broker: 1, forMs: 100 },
    ...span,
  } as const

  test('has no cause when nothing happened, and that is against it', () => {
    const evidence = withDelivery(taken(2, []))
    expect(causesOf(evidence)).toEqual(['unexplained'])
    expect(broken(evidence).promises).toEqual([
      'What was delivered more than once was so across a fault, a short time before it',
    ])
  })

  test('without a cause is told with its records in retry topics and queues', () => {
    const by = { worker: 'w1', arrivedMs: startMs }
    const parked = [{ key: 'crm/shop-0', state: 'waiting/2/7 3.a.b/1/fresh', outcome: '', by }]
    const { checks } = judge(withDelivery(taken(2, ['w1', 'w1']), { parked }))
    const told = checks.flatMap(({ against }) => against)
    expect(told).toEqual([expect.stringContaining('in waiting/2/7 3.a.b/1/fresh by w1 at 2027-01-15T')])
  })

  test('has one when the worker that had delivered it was killed between', () => {
    const evidence = withDelivery(taken(2, ['w1', 'w2']), { changes: [kill] })
    expect(causesOf(evidence)).toEqual(['worker killed or stopped'])
    expect(broken(evidence).promises).toEqual([])
  })

  test('has none when another worker was killed', () => {
    const other = { ...kill, worker: 'w3' }
    expect(causesOf(withDelivery(taken(2, ['w1', 'w2']), { changes: [other] }))).toEqual(['unexplained'])
  })

  test('has none when a worker left as planned', () => {
    const leave = { ...kill, kind: 'leave' } as const
    expect(causesOf(withDelivery(taken(2, ['w1', 'w2']), { changes: [leave] }))).toEqual(['unexplained'])
  })

  test('has one when its sender was gone before it was answered', () => {
    expect(causesOf(withDelivery(taken(2, [], false)))).toEqual(['answer not read'])
  })

  test('has one when its sender says that it had no answer', () => {
    const late = { key: 'crm/shop-0', state: '1', outcome: 'timeout', by: undefined }
    expect(causesOf(withDelivery(taken(2, []), { parked: [late] }))).toEqual(['answer not read'])
  })

  test('has one when it is twice in Kafka', () => {
    const written = [...flawless().written, 'shop-0']
    expect(causesOf(withDelivery(taken(2, []), { written }))).toEqual(['written twice'])
  })

  test('has one when a retry of it is twice in Kafka', () => {
    const retry = { key: 'crm/shop-0', state: '1', outcome: 'status 503', by: undefined }
    expect(causesOf(withDelivery(taken(2, []), { parked: [retry, retry] }))).toEqual(['written twice'])
    const next = { ...retry, state: '2' }
    expect(causesOf(withDelivery(taken(2, []), { parked: [retry, next] }))).toEqual(['unexplained'])
  })

  test('has one when a broker was killed', () => {
    expect(causesOf(withDelivery(taken(2, []), { happened: [brokerKill] }))).toEqual(['Kafka in trouble'])
  })

  test('has none when the worker had delivered it long before: it had committed that', () => {
    const later = { ...kill, fromMs: startMs + 40 * secondMs, toMs: startMs + 41 * secondMs }
    const [before, after] = taken(2, ['w1', 'w2'])
    if (before === undefined || after === undefined) throw new Error('two were taken')
    const deliveries = [before, { ...after, arrivedMs: startMs + 42 * secondMs }]
    expect(causesOf(withDelivery(deliveries, { changes: [later] }))).toEqual(['unexplained'])
  })

  test('has one when it had, and Kafka took no commit in between', () => {
    const later = { ...kill, fromMs: startMs + 40 * secondMs, toMs: startMs + 41 * secondMs }
    const outage = { ...brokerKill, fromMs: startMs + 10 * secondMs, toMs: startMs + 39 * secondMs }
    const [before, after] = taken(2, ['w1', 'w2'])
    if (before === undefined || after === undefined) throw new Error('two were taken')
    const deliveries = [before, { ...after, arrivedMs: startMs + 42 * secondMs }]
    const evidence = withDelivery(deliveries, { changes: [later], happened: [outage] })
    expect(causesOf(evidence)).toEqual(['worker killed or stopped'])
  })

  test('has one when the worker that was killed had been refused it: its retry is there, and it itself once more', () => {
    const retried = taken(2, ['w2', 'w2'])
    const evidence = withDelivery(retried, { changes: [kill] })
    expect(causesOf(evidence)).toEqual(['unexplained'])
    const refused = new Map([['crm/shop-0', [{ worker: 'w1', arrivedMs: startMs + secondMs }]]])
    expect(causesOf({ ...evidence, refused })).toEqual(['worker killed or stopped'])
  })

  test('has one when the worker that was killed had parked it: its retry is there, and it itself once more', () => {
    const evidence = withDelivery(taken(2, ['w2', 'w2']), { changes: [kill] })
    const parkedBy = (worker: string, atS: number): Evidence => {
      const by = { worker, arrivedMs: startMs + atS * secondMs }
      return { ...evidence, parked: [{ key: 'crm/shop-0', state: '2s/0/1', outcome: '', by }] }
    }
    expect(causesOf(parkedBy('w1', 1))).toEqual(['worker killed or stopped'])
    // The record was under way when its worker was killed.
    expect(causesOf(parkedBy('w1', 60))).toEqual(['worker killed or stopped'])
    expect(causesOf(parkedBy('w1', -20))).toEqual(['unexplained'])
    expect(causesOf(parkedBy('w3', 1))).toEqual(['unexplained'])
  })

  test('is counted for the fault, beside what that may have repeated', () => {
    const evidence = withDelivery(taken(2, ['w1', 'w2']), { changes: [kill] })
    expect(judge(evidence).repeats.map(({ fault }) => fault)).toEqual([kill])
    // The killed worker had delivered each of these messages, so the kill may have repeated all of them.
    expect(countUncommitted(evidence)).toEqual([evidence.deliveries.size])
  })
})

/** Returns an outage in which a broker was stopped for a second. */
const outage = (fromMs: number): Evidence['happened'] => [
  {
    lane: 'brokers',
    fault: { kind: 'pause broker', broker: 1, forMs: 100 },
    fromMs,
    toMs: fromMs + secondMs,
  },
]

describe('a committed position', () => {
  const back = { partition: 'events/0', from: 7, to: 5, seenMs: startMs, lostMs: startMs + 2 * secondMs }
  test('that goes back is told', () => {
    const promise = 'What the group has committed never goes back while Kafka is well'
    const { promises, against } = broken({ ...flawless(), backwardCommits: [back] })
    expect(promises).toEqual([promise])
    expect(against).toEqual([expect.stringMatching(/^events\/0 at .*: from 7 to 5$/)])
  })

  test('that goes back just after a broker was stopped is not: a request that it had kept may have come late', () => {
    const during = { ...flawless(), backwardCommits: [back], happened: outage(startMs) }
    expect(broken(during).promises).toEqual([])
    const long = { ...during, happened: outage(startMs - 60 * secondMs) }
    expect(broken(long).promises).toHaveLength(1)
  })

  test('is seen to go back, or to be no more, since the last look at its partition', () => {
    const watch = new CommitWatch()
    watch.note(
      1,
      new Map([
        ['events/0', 7],
        ['events/1', 3],
      ]),
    )
    // This answer is that of a broker which doesn't know all topics.
    watch.note(2, new Map([['events/0', 8]]))
    expect(watch.backward).toEqual([])
    watch.note(
      3,
      new Map([
        ['events/0', 5],
        ['events/1', -1],
      ]),
    )
    expect(watch.backward).toEqual([
      { partition: 'events/0', from: 8, to: 5, seenMs: 2, lostMs: 3 },
      { partition: 'events/1', from: 3, to: -1, seenMs: 1, lostMs: 3 },
    ])
  })
})

test.each<[flaw: string, Partial<Evidence>, told: string]>([
  ['a delete that is missing', { deletes: new Set() }, 'crm/shop/leaver-0'],
  [
    'a wrong value',
    {
      audiences: [
        {
          destination: 'members',
          wrong: [{ user: 'user-1', property: 'ltv', value: 2, has: 1 }],
          sentTooLate: [],
          heldTooLong: [],
        },
      ],
    },
    'members: user-1 ltv is 1 instead of 2',
  ],
  [
    'a value that outlived a deletion',
    { audiences: [{ destination: 'members', wrong: [], sentTooLate: [], heldTooLong: ['user-1 ltv'] }] },
    'members: user-1 ltv',
  ],
  [
    'an order that is not the one in which it was sent',
    { written: ['web-0-5', 'web-0-0', 'shop-0', 'till-0'] },
    'web-0-0 is behind number 5 of client-0-user-0',
  ],
  ['a wrong signature', { signatures: { right: 10, wrong: ['crm: absent'] } }, 'crm: absent'],
  [
    'what the gateway left out',
    { leftOut: ['[{"reason":"bad_timestamp"}]'] },
    '[{"reason":"bad_timestamp"}]',
  ],
  ['a process that ended by itself', { mishaps: ['w1 has ended by itself'] }, 'w1 has ended by itself'],
  ['a fault of Sluice', { ownFaults: ['{"level":"error"}'] }, '{"level":"error"}'],
])('%s is told', (_flaw, flaw, told) => {
  expect(broken({ ...flawless(), ...flaw }).against).toContain(told)
})

test('what a client had to send again does not disturb the order', () => {
  expect(broken({ ...flawless(), written: ['web-0-0', 'web-0-5', 'web-0-0', 'shop-0', 'till-0'] })).toEqual({
    promises: [],
    against: [],
  })
})

test('a drill that did not come to its end has failed', () => {
  expect(judge({ ...flawless(), lagLeft: 3 }).isPassed).toBe(false)
})

/** Returns the log line of a worker that has begun a partition. */
function begun(partition: number, atS: number, topic = 'events') {
  const time = new Date(startMs + atS * secondMs).toISOString()
  return { level: 'debug', msg: 'a partition is begun', topic, partition, time }
}

test('the owner of a partition at a time is the last worker that had begun it', () => {
  const logs = new Map([
    ['w1', [begun(0, 0), begun(1, 0), begun(0, 8, 'retry.2s'), { level: 'info', msg: 'stopped', time: '' }]],
    ['w2', [begun(0, 5)]],
  ])
  const ownerOf = readOwners('events', logs)
  const ownersAt = (atS: number) => [0, 1, 2].map((partition) => ownerOf(partition, startMs + atS * secondMs))
  expect(ownersAt(-1)).toEqual([undefined, undefined, undefined])
  expect(ownersAt(4)).toEqual(['w1', 'w1', undefined])
  expect(ownersAt(9)).toEqual(['w2', 'w1', undefined])
})

test('the worker of a tenure is the one that began the partition next to the begin of the tenure', () => {
  const logs = new Map([
    ['w1', [begun(0, 0), begun(1, 6)]],
    ['w2', [begun(0, 8)]],
  ])
  const tenantOf = readTenants('events', logs)
  const tenantsAt = (atS: number) =>
    [0, 1, 2].map((partition) => tenantOf(partition, startMs + atS * secondMs))
  expect(tenantsAt(1)).toEqual(['w1', 'w1', undefined])
  expect(tenantsAt(6)).toEqual(['w2', 'w1', undefined])
  expect(tenantsAt(9)).toEqual(['w2', 'w1', undefined])
})
