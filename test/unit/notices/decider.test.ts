import { describe, expect, test } from 'vitest'
import { Board, type NoticeRecord } from '../../../src/notices/board.ts'
import { Decider, type Situation } from '../../../src/notices/decider.ts'
import { messageOf, type Notice } from '../../../src/notices/notice.ts'
import { encodeForgotten, encodeReport, encodeTold, type Report } from '../../../src/notices/notice-record.ts'
import { hour, minute, second, terms } from './terms.ts'

const nothing: Report = { failing: [], answered: [], counts: [] }
const main = { destinationId: 'crm', hookId: 'main' }

/** A group of workers on a clock that only the test moves. Its decisions are recorded and sent at once. */
class World {
  nowMs = 100 * hour
  board = new Board()
  decider = new Decider(terms)
  behind: Situation['behind'] = []
  secrets: Situation['secrets'] = []
  known = new Set(['crm', 'crm/main', 'crm/other', 'erp', 'erp/main'])
  coalesced = 0

  pass(ms: number): void {
    this.nowMs += ms
  }

  take(record: Omit<NoticeRecord, 'offset'>): void {
    this.board.take({ ...record, offset: this.board.position }, this.nowMs)
  }

  report(worker: string, report: Partial<Report>): void {
    this.take(encodeReport(worker, { ...nothing, ...report }))
  }

  fails(worker: string, sinceMs: number, lastOutcome = 'status 500', hook = main): void {
    this.report(worker, { failing: [{ ...hook, sinceMs, lastFailedMs: this.nowMs, lastOutcome }] })
  }

  failAll(hooks: readonly (typeof main)[]): void {
    const times = { sinceMs: this.nowMs, lastFailedMs: this.nowMs, lastOutcome: 'timeout' }
    this.report('w1', { failing: hooks.map((hook) => ({ ...hook, ...times })) })
  }

  answers(worker: string): void {
    this.report(worker, { answered: [{ ...main, atMs: this.nowMs }] })
  }

  decide(): readonly Notice[] {
    const { notices, forgotten, coalesced } = this.decider.decide(this.board, {
      nowMs: this.nowMs,
      behind: this.behind,
      secrets: this.secrets,
      isKnown: (destinationId, hookId) =>
        this.known.has(hookId === undefined ? destinationId : `${destinationId}/${hookId}`),
    })
    this.coalesced += coalesced
    for (const key of forgotten) this.take(encodeForgotten(key))
    for (const notice of notices) {
      this.take(encodeTold({ notice, isSent: false }))
      this.take(encodeTold({ notice, isSent: true }))
    }
    return notices
  }

  /** Decides some times, 15 seconds apart, and returns the notices. */
  look(times: number, before: () => void = () => undefined): readonly Notice[] {
    return Array.from({ length: times }, () => {
      this.pass(15 * second)
      before()
      return this.decide()
    }).flat()
  }
}

describe('a hook that fails', () => {
  test('is told once, whoever sees it, since the first failure that anybody saw', () => {
    const world = new World()
    const sinceMs = world.nowMs - 6 * minute
    const told = world.look(40, () => {
      for (let worker = 0; worker < 50; worker++) world.fails(`w${worker}`, sinceMs + worker * second)
    })
    expect(told).toEqual([
      {
        kind: 'failing',
        ...main,
        sinceMs,
        atMs: sinceMs + 6 * minute + 15 * second,
        lastOutcome: 'status 500',
        times: 1,
      },
    ])
  })

  test('is told to have recovered once it has taken something and nobody sees it fail any more', () => {
    const world = new World()
    const sinceMs = world.nowMs - 6 * minute
    world.look(4, () => world.fails('w1', sinceMs))
    expect(
      world.look(4, () => {
        world.answers('w2')
        world.fails('w1', sinceMs)
      }),
    ).toEqual([])
    const told = world.look(10, () => world.answers('w1'))
    expect(told).toMatchObject([{ kind: 'recovered', ...main, sinceMs }])
  })

  test('has recovered when it has been well for long enough, at the time of the first answer', () => {
    const world = new World()
    world.look(4, () => world.fails('w1', world.nowMs - 6 * minute))
    world.pass(second)
    const wellSinceMs = world.nowMs
    world.answers('w1')
    expect(world.decide()).toEqual([])
    world.pass(terms.wellMs - 1)
    expect(world.decide()).toEqual([])
    world.pass(1)
    expect(world.decide()).toMatchObject([{ kind: 'recovered', atMs: wellSinceMs }])
  })

  test('that fails again before that has not recovered, and the time begins anew', () => {
    const world = new World()
    const sinceMs = world.nowMs - 6 * minute
    world.look(4, () => world.fails('w1', sinceMs))
    world.pass(second)
    world.answers('w1')
    world.decide()
    world.pass(terms.wellMs - second)
    world.fails('w1', sinceMs)
    expect(world.decide()).toEqual([])
    world.pass(second)
    world.answers('w1')
    expect(world.decide()).toEqual([])
    world.pass(terms.wellMs - 1)
    expect(world.decide()).toEqual([])
    world.pass(1)
    expect(world.decide()).toMatchObject([{ kind: 'recovered' }])
  })

  test('has not recovered only because nothing is sent to it, or who saw it is gone', () => {
    const world = new World()
    world.look(4, () => world.fails('w1', world.nowMs - 6 * minute))
    expect(world.look(1_000)).toEqual([])
  })

  test('and recovers again and again is told once in a window, with how often it began', () => {
    const world = new World()
    const told: Notice[] = []
    for (let flaps = 0; flaps < 5; flaps++) {
      const sinceMs = world.nowMs
      told.push(
        ...world.look(24, () => world.fails('w1', sinceMs)),
        ...world.look(8, () => world.answers('w1')),
      )
    }
    expect(told.map(({ kind }) => kind)).toEqual(['failing', 'recovered'])
    expect(world.coalesced).toBe(4)
    world.pass(hour)
    expect(world.look(1, () => world.fails('w1', world.nowMs))).toMatchObject([{ kind: 'failing', times: 5 }])
  })

  test('that still fails when the window is over is told then', () => {
    const world = new World()
    world.look(4, () => world.fails('w1', world.nowMs))
    world.look(8, () => world.answers('w1'))
    const told = world.look(250, () => world.fails('w1', world.nowMs - minute))
    expect(told).toMatchObject([{ kind: 'failing', times: 1 }])
  })

  test('is told by another worker that goes on only where it was not', () => {
    const world = new World()
    world.look(4, () => world.fails('w1', world.nowMs - 6 * minute))
    world.decider = new Decider(terms)
    expect(world.look(10, () => world.fails('w1', world.nowMs - 6 * minute))).toEqual([])
    expect(world.look(10, () => world.answers('w1'))).toMatchObject([{ kind: 'recovered' }])
  })

  test('is not told when the catalog has it no more, and is new when it is back', () => {
    const world = new World()
    world.look(1, () => world.fails('w1', world.nowMs))
    world.known.delete('crm/main')
    expect(world.look(10, () => world.fails('w1', world.nowMs))).toEqual([])
    world.known.add('crm/main')
    expect(world.look(1, () => world.fails('w1', world.nowMs))).toMatchObject([{ kind: 'failing' }])
  })

  test('is told beside ten thousand others in steps of a hundred', () => {
    const world = new World()
    world.failAll(manyOf(world))
    expect([world.decide().length, world.decide().length, world.decide().length]).toEqual([100, 100, 50])
    expect(world.decide()).toEqual([])
  })

  test('of which one destination has very many delays no notice of another', () => {
    const world = new World()
    const many = Array.from({ length: 250 }, (_, at) => ({ destinationId: 'crm', hookId: `h${at}` }))
    const hooks = [...many, { destinationId: 'erp', hookId: 'main' }]
    for (const { destinationId, hookId } of hooks) world.known.add(`${destinationId}/${hookId}`)
    world.failAll(hooks)
    expect(world.decide().filter(({ destinationId }) => destinationId === 'erp')).toHaveLength(1)
  })

  test('has recovered at its first answer, and in a minute, even if two hundred others recover too', () => {
    const world = new World()
    const hooks = manyOf(world)
    world.failAll(hooks)
    expect([...world.decide(), ...world.decide(), ...world.decide()]).toHaveLength(250)
    const atMs = world.nowMs
    const told = world.look(5, () =>
      world.report('w1', { answered: hooks.map((hook) => ({ ...hook, atMs: world.nowMs - 15 * second })) }),
    )
    expect(told).toMatchObject(hooks.map(() => ({ kind: 'recovered', atMs })))
  })

  test('has failed as often as it did, even if its notice has to wait for those of two hundred others', () => {
    const world = new World()
    const others = manyOf(world)
    for (let flaps = 0; flaps < 3; flaps++) {
      world.look(4, () => world.failAll([main]))
      world.look(8, () => world.answers('w1'))
    }
    world.pass(hour)
    const told = world.look(3, () => world.failAll([...others, main]))
    expect(told[250]).toMatchObject({ ...main, kind: 'failing', times: 3 })
  })
})

/** Adds 250 hooks to the catalog. One decision doesn't report that many. */
function manyOf(world: World): readonly (typeof main)[] {
  const hooks = Array.from({ length: 250 }, (_, index) => ({ destinationId: 'crm', hookId: `h${index}` }))
  for (const { hookId } of hooks) world.known.add(`crm/${hookId}`)
  return hooks
}

test.each(['filter_failed', 'mapping_failed'])(
  'one dead letter %s is told at once, because a rule of the customer fails',
  (reason) => {
    const world = new World()
    world.report('w1', { counts: [{ destinationId: 'crm', paced: {}, dead_letters: { [reason]: 1 } }] })
    const [notice] = world.decide()
    expect(notice).toMatchObject({ kind: 'dead_letters', counts: { [reason]: 1 } })
    if (notice === undefined) throw new Error('nothing is told')
    const { text } = messageOf(notice, () => ({ name: 'CRM' }))
    expect(JSON.parse(text).properties.advice).toContain(`--reason ${reason}`)
    // The next ones wait for the end of the window, as others do.
    world.report('w1', { counts: [{ destinationId: 'crm', paced: {}, dead_letters: { [reason]: 50 } }] })
    expect(world.decide()).toEqual([])
  },
)

test.each([
  ['rules', 'take more time than delivery.maxRuleTime'],
  ['rules_shared', 'of all destinations together want more time'],
])('one wait for the reason %s is told at once, and which limit is used up', (reason, limit) => {
  const world = new World()
  world.decide()
  world.report('w1', { counts: [{ destinationId: 'crm', paced: { [reason]: 1 }, dead_letters: {} }] })
  const [notice] = world.decide()
  if (notice === undefined) throw new Error('nothing is told')
  const { text } = messageOf(notice, () => ({ name: 'CRM' }))
  const { reasons, advice } = JSON.parse(text).properties
  expect(reasons).toEqual({ [reason]: 1 })
  expect(advice).toContain(limit)
})

function deadLetters(count: number): Report['counts'] {
  return [{ destinationId: 'crm', paced: {}, dead_letters: { expired: count - 1, failed_for_good: 1 } }]
}

describe('dead letters of a destination', () => {
  test('are told when all workers together have enough of them in a window, with the sum', () => {
    const world = new World()
    const beganMs = world.nowMs
    for (const worker of ['w1', 'w2', 'w3']) world.report(worker, { counts: deadLetters(3) })
    expect(world.decide()).toEqual([])
    world.pass(minute)
    world.report('w1', { counts: deadLetters(2) })
    expect(world.decide()).toEqual([
      {
        kind: 'dead_letters',
        destinationId: 'crm',
        sinceMs: beganMs,
        atMs: beganMs + minute,
        counts: { expired: 7, failed_for_good: 4 },
      },
    ])
  })

  test('that come on and on are told once a window, each counted once', () => {
    const world = new World()
    const told = world.look(4 * 60 * 4, () => world.report('w1', { counts: deadLetters(5) }))
    expect(told).toHaveLength(4)
    const sums = told.map((notice) => ('counts' in notice ? notice.counts : {}))
    expect(sums.map((sum) => sum['failed_for_good'])).toEqual([2, 240, 240, 240])
  })

  test('that are rare are never told', () => {
    const world = new World()
    const told = Array.from({ length: 20 }, () => {
      world.pass(50 * minute)
      world.report('w1', { counts: deadLetters(4) })
      return world.look(240)
    })
    expect(told.flat()).toEqual([])
  })

  test('of days are not added up by a worker that begins to decide, and those of this window are', () => {
    const world = new World()
    for (let day = 0; day < 5; day++) {
      world.report('w1', { counts: deadLetters(3) })
      world.pass(24 * hour)
    }
    expect(world.decide()).toEqual([])
    world.decider = new Decider(terms)
    world.report('w1', { counts: deadLetters(10) })
    expect(world.decide()).toMatchObject([{ counts: { expired: 9, failed_for_good: 1 } }])
  })

  test('of a notice that is sent are not counted again by who reads only that it is sent', () => {
    const world = new World()
    world.report('w1', { counts: deadLetters(12) })
    world.pass(minute)
    const notice = {
      kind: 'dead_letters',
      destinationId: 'crm',
      sinceMs: 0,
      atMs: world.nowMs,
      counts: { expired: 12 },
    } as const
    world.take(encodeTold({ notice, isSent: true }))
    expect(world.board.tallies('dead_letters').size).toBe(0)
  })

  test('are not told where no number is set', () => {
    const world = new World()
    world.decider = new Decider({ ...terms, least: { paced: 0, dead_letters: 0 } })
    world.report('w1', { counts: deadLetters(1_000) })
    expect(world.decide()).toEqual([])
  })
})

describe('deliveries that are put off', () => {
  const counts = [{ destinationId: 'crm', paced: { overflow: 100 }, dead_letters: {} }]

  test('are told of a destination that works', () => {
    const world = new World()
    world.decide()
    world.report('w1', { counts })
    expect(world.decide()).toMatchObject([{ kind: 'paced', destinationId: 'crm', counts: { overflow: 100 } }])
  })

  test('of an outage are not told after it by a worker that begins to decide', () => {
    const world = new World()
    world.report('w1', { counts })
    expect(world.decide()).toEqual([])
  })

  test('are not told of one with a hook that fails: that is the reason, and is told', () => {
    const world = new World()
    world.decide()
    world.fails('w1', world.nowMs)
    world.report('w2', { counts })
    expect(world.decide()).toMatchObject([{ kind: 'failing' }])
    expect(world.decide()).toEqual([])
  })
})

describe('a destination that needs a backfill', () => {
  const behind = [{ destinationId: 'crm', spaceId: 'personas' }]

  test('is told once, when it has needed one for a while', () => {
    const world = new World()
    world.behind = behind
    expect(world.look(20)).toEqual([])
    expect(world.look(500)).toMatchObject([
      { kind: 'needs_backfill', destinationId: 'crm', spaceId: 'personas' },
    ])
  })

  test('that had one is told anew when it needs another', () => {
    const world = new World()
    world.behind = behind
    world.look(22)
    world.behind = []
    world.look(300)
    world.behind = behind
    expect(world.look(22)).toMatchObject([{ kind: 'needs_backfill' }])
  })

  test('is not told again by a worker that goes on, and learns of it a little later', () => {
    const world = new World()
    world.behind = behind
    world.look(400)
    world.decider = new Decider(terms)
    world.behind = []
    world.look(2)
    world.behind = behind
    expect(world.look(400)).toEqual([])
  })
})

describe('a secret that has an end', () => {
  const endsAtMs = 500 * hour
  const told = { kind: 'secret_ending', destinationId: 'crm', endsAtMs }

  function worldAt(nowMs: number): World {
    const world = new World()
    world.nowMs = nowMs
    world.secrets = [{ destinationId: 'crm', endsAtMs }]
    return world
  }

  test('is told once in the week before, whoever decides', () => {
    const world = worldAt(endsAtMs - 7 * 24 * hour - 31 * second)
    expect(world.look(2)).toEqual([])
    expect(world.look(3)).toMatchObject([told])
    world.decider = new Decider(terms)
    expect(world.look(3)).toEqual([])
  })

  test('is told at once where the end is nearer than that, and again when the end is moved', () => {
    const world = worldAt(endsAtMs - hour)
    expect(world.look(3)).toMatchObject([told])
    world.secrets = [{ destinationId: 'crm', endsAtMs: endsAtMs + hour }]
    expect(world.look(3)).toMatchObject([{ ...told, endsAtMs: endsAtMs + hour }])
  })

  test('is not told once it has ended', () => {
    expect(worldAt(endsAtMs).look(3)).toEqual([])
  })
})
