import { describe, expect, test } from 'vitest'
import { Board, type NoticeRecord } from '../../../src/notices/board.ts'
import type { Notice } from '../../../src/notices/notice.ts'
import { encodeReport, encodeTold, type Report } from '../../../src/notices/notice-record.ts'
import {
  noticesOfPauses,
  type PausableDestination,
  PauseDecider,
} from '../../../src/notices/pause-decider.ts'
import { encodePause, type Resumption } from '../../../src/notices/pause-record.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
/** The time after which a failing destination is paused, in milliseconds. */
const time = 8 * hour
const lookMs = 15 * second

const terms = { staleMs: 75 * second, steadyMs: 5 * minute }
const crm: PausableDestination = {
  state: 'on',
  hookIds: ['main', 'spare'],
  contents: new Map([
    ['main', 'm1'],
    ['spare', 's1'],
  ]),
  urls: 'u1',
  autoPauseMs: time,
}

/**
 * A process that reads the topic, and may decide. `skewMs` says how far its clock is ahead, in milliseconds.
 */
class Process {
  readonly board = new Board()
  readonly decider = new PauseDecider(terms)
  readonly skewMs: number

  constructor(skewMs = 0) {
    this.skewMs = skewMs
  }

  get isPaused(): boolean {
    return this.board.pauses.paused.has('crm')
  }
}

/** The topic `notices`, on a clock that only the test moves. */
class World {
  nowMs = 50_000 * hour
  log: NoticeRecord[] = []
  destinations = new Map([['crm', crm]])
  isSound = true
  isWanted = true
  notices: Notice[] = []

  write(record: Omit<NoticeRecord, 'offset'>): void {
    this.log.push({ ...record, offset: this.log.length })
  }

  report(worker: string, report: Partial<Report>): void {
    this.write(encodeReport(worker, { failing: [], answered: [], counts: [], ...report }))
  }

  /**
   * Reports that these hooks fail at a worker. Their last failure is now, unless `lastFailedMs` says
   * otherwise.
   */
  fail(worker = 'w1', hookIds = crm.hookIds, lastFailedMs = this.nowMs): void {
    const hook = {
      destinationId: 'crm',
      sinceMs: lastFailedMs - 5 * minute,
      lastFailedMs,
      lastOutcome: 'timeout',
    }
    this.report(worker, { failing: hookIds.map((hookId) => ({ ...hook, hookId })) })
  }

  answer(worker = 'w2'): void {
    this.report(worker, { answered: [{ destinationId: 'crm', hookId: 'main', atMs: this.nowMs }] })
  }

  resume(content: Resumption = { atMs: this.nowMs, by: 'ann', cause: 'asked' }): void {
    this.write(encodePause({ kind: 'resumed', destinationId: 'crm', content }))
  }

  read({ board, skewMs }: Process): void {
    for (const record of this.log.slice(board.position)) board.take(record, this.nowMs + skewMs)
  }

  /** Returns the decisions of a process. It must have read everything before. Writes nothing. */
  decided({ board, decider, skewMs }: Process) {
    const { isSound, destinations } = this
    const destinationOf = (id: string) => destinations.get(id)
    return decider.decide(board, { nowMs: this.nowMs + skewMs, isSound, destinationOf })
  }

  /** Lets a process read and decide. Then writes its decisions, and sends its notices. */
  look(one: Process): void {
    this.read(one)
    const { notices, over } = noticesOfPauses(one.board, this.isWanted)
    for (const notice of notices) {
      this.write(encodeTold({ notice, isSent: true }))
      this.notices.push(notice)
    }
    for (const record of [...over, ...this.decided(one)]) this.write(encodePause(record))
  }

  /**
   * Lets a process look every `everyMs` milliseconds, until `ms` milliseconds have passed. Calls `before`
   * before each look.
   */
  pass(ms: number, one: Process, before: () => void = () => this.fail(), everyMs = lookMs): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs;) {
      this.nowMs += everyMs
      before()
      this.look(one)
    }
    this.read(one)
  }

  /** Returns a world with a paused destination, and the process that has paused it. */
  static paused(): { world: World; decider: Process } {
    const world = new World()
    const decider = new Process()
    world.pass(time + minute, decider)
    return { world, decider }
  }
}

/** Returns a process that reads a mirror of the topic, which has only the last record of each key. */
function mirrorOf({ log, nowMs }: World): Process {
  const mirrored = log.filter((one) => log.findLast(({ key }) => key.equals(one.key)) === one)
  const reader = new Process()
  for (const [offset, record] of mirrored.entries()) reader.board.take({ ...record, offset }, nowMs)
  return reader
}

describe('a destination', () => {
  test('whose URLs have all failed for the time is paused, and not before', () => {
    const world = new World()
    const decider = new Process()
    world.pass(time, decider)
    expect(decider.isPaused).toBe(false)
    world.pass(minute, decider)
    expect(decider.isPaused).toBe(true)
    expect(decider.board.pauses.pauseOf('crm')).toMatchObject({ urls: 'u1', lastOutcome: 'timeout' })
    const other = new Process()
    world.read(other)
    expect(other.isPaused).toBe(true)
  })

  test('with one URL that does not fail is not paused', () => {
    const world = new World()
    const decider = new Process()
    world.pass(1.5 * time, decider, () => world.fail('w1', ['main']), minute)
    expect(decider.isPaused).toBe(false)
  })

  test('that any worker sees take a message has its time begin anew, and it is paused after that time', () => {
    const world = new World()
    const decider = new Process()
    world.pass(0.75 * time, decider)
    world.answer('w2')
    world.pass(0.75 * time, decider)
    expect(decider.isPaused).toBe(false)
    world.pass(0.25 * time + minute, decider)
    expect(decider.isPaused).toBe(true)
  })

  test('that works again is not timed any more', () => {
    const world = new World()
    const decider = new Process()
    world.pass(hour, decider)
    expect([...decider.board.pauses.timed]).toEqual(['crm'])
    world.report('w1', {})
    world.answer('w2')
    world.pass(5 * minute, decider, () => world.report('w1', {}))
    expect([...decider.board.pauses.timed]).toEqual([])
  })

  test('without a message for days is paused only when it fails again', () => {
    const world = new World()
    const decider = new Process()
    world.pass(hour, decider)
    world.report('w1', {})
    world.pass(1.5 * time, decider, () => undefined, minute)
    expect(decider.isPaused).toBe(false)
    world.pass(minute, decider)
    expect(decider.isPaused).toBe(true)
  })

  test.each(['off', 'paused'] as const)('that the catalog has %s is not timed', (state) => {
    const world = new World()
    world.destinations.set('crm', { ...crm, state })
    const decider = new Process()
    world.pass(1.5 * time, decider, () => world.fail(), minute)
    expect(world.log.filter(({ key }) => key.includes('clock'))).toEqual([])
    expect(decider.isPaused).toBe(false)
  })

  test('with other URLs has its time begin anew', () => {
    const world = new World()
    const decider = new Process()
    world.pass(0.75 * time, decider)
    world.destinations.set('crm', { ...crm, urls: 'u2' })
    world.pass(0.75 * time, decider)
    expect(decider.isPaused).toBe(false)
    world.pass(0.25 * time + minute, decider)
    expect(decider.isPaused).toBe(true)
  })

  test('that is never to be paused is not', () => {
    const world = new World()
    world.destinations.set('crm', { ...crm, autoPauseMs: 0 })
    const decider = new Process()
    world.pass(2 * time, decider, () => world.fail(), minute)
    expect(decider.isPaused).toBe(false)
  })
})

describe('a process that decides', () => {
  test('goes on with the time of the one before, once it has seen for a while that all fails', () => {
    const world = new World()
    world.pass(time - minute, new Process())
    const next = new Process()
    world.pass(5 * minute, next)
    expect(next.isPaused).toBe(false)
    world.pass(minute, next)
    expect(next.isPaused).toBe(true)
  })

  test('times from now on where nobody has decided for more than an hour', () => {
    const world = new World()
    world.pass(0.75 * time, new Process())
    // The next decider has read all these records before the two hours pass.
    const next = new Process()
    world.read(next)
    world.nowMs += 2 * hour
    world.pass(0.75 * time, next)
    expect(next.isPaused).toBe(false)
    world.pass(0.25 * time + minute, next)
    expect(next.isPaused).toBe(true)
  })

  test('pauses as soon as always where its clock was set back', () => {
    const world = new World()
    world.destinations.set('crm', { ...crm, autoPauseMs: 10 * minute })
    const decider = new Process()
    world.pass(3 * minute, decider)
    world.nowMs -= 10 * hour
    world.pass(9 * minute, decider)
    expect(decider.isPaused).toBe(false)
    world.pass(2 * minute, decider)
    expect(decider.isPaused).toBe(true)
  })

  test('writes that all fails again, and goes on to, where its clock was set back', () => {
    const world = new World()
    const decider = new Process()
    world.pass(4 * hour, decider)
    const { length } = world.log
    world.nowMs -= 2 * hour
    world.pass(20 * minute, decider)
    const keys = world.log.slice(length).map(({ key }) => key.toString())
    expect(keys.filter((key) => key.includes('clock'))).toHaveLength(2)
  })

  test('pauses nothing in a trouble of Sluice, nor for what failed before its end', () => {
    const world = new World()
    const decider = new Process()
    world.pass(time - 10 * minute, decider)
    world.isSound = false
    world.pass(20 * minute, decider)
    expect(decider.isPaused).toBe(false)
    world.isSound = true
    const lastFailedMs = world.nowMs
    world.pass(20 * minute, decider, () => world.fail('w1', crm.hookIds, lastFailedMs))
    expect(decider.isPaused).toBe(false)
    world.pass(minute, decider)
    expect(decider.isPaused).toBe(true)
  })

  test('is not misled by a worker whose clock is years behind', () => {
    const world = new World()
    const decider = new Process()
    world.pass(0.75 * time, decider, () => world.fail('w1', crm.hookIds, 5), minute)
    expect(decider.isPaused).toBe(false)
  })

  test('whose clock differs from that of the one before pauses that much earlier or later, and no more', () => {
    const world = new World()
    world.pass(time - 2 * hour, new Process())
    const ahead = new Process(hour)
    world.pass(55 * minute, ahead)
    expect(ahead.isPaused).toBe(false)
    world.pass(6 * minute, ahead)
    expect(ahead.isPaused).toBe(true)
  })
})

describe('a pause', () => {
  test('is as it was in a mirror of the topic, whose records have lower offsets: over if it was resumed, and in force otherwise', () => {
    const { world, decider } = World.paused()
    expect(mirrorOf(world).isPaused).toBe(true)
    world.resume()
    expect(mirrorOf(world).isPaused).toBe(false)
    world.pass(2 * time, decider)
    expect(mirrorOf(world).isPaused).toBe(true)
  })

  test('is told once, and so is its end, whoever decides', () => {
    const { world } = World.paused()
    world.pass(hour, new Process(), () => undefined)
    expect(world.notices).toMatchObject([
      { kind: 'auto_paused', destinationId: 'crm', lastOutcome: 'timeout' },
    ])
    world.resume()
    const next = new Process()
    world.pass(hour, next, () => undefined)
    world.pass(hour, new Process(), () => undefined)
    const [told] = world.notices
    expect(world.notices.slice(1)).toMatchObject([{ kind: 'resumed', sinceMs: told?.atMs, cause: 'asked' }])
    expect(next.board.pauses.lastPause('crm')).toBeUndefined()
  })

  test('makes no notice where nobody is to get one', () => {
    const world = new World()
    world.isWanted = false
    const decider = new Process()
    world.pass(1.5 * time, decider, () => world.fail(), minute)
    expect(decider.isPaused).toBe(true)
    world.resume()
    world.pass(hour, decider, () => undefined)
    expect(decider.isPaused).toBe(false)
    expect(world.notices).toEqual([])
    expect(decider.board.pauses.lastPause('crm')).toBeUndefined()
  })

  test('is over for everybody when somebody resumes it, and the time begins anew with the next failure', () => {
    const { world, decider } = World.paused()
    const before = world.nowMs
    world.resume()
    world.pass(1.5 * time, decider, () => world.fail('w1', crm.hookIds, before), minute)
    expect(decider.isPaused).toBe(false)
    world.pass(time, decider)
    expect(decider.isPaused).toBe(false)
    world.pass(minute, decider)
    expect(decider.isPaused).toBe(true)
  })

  test('that somebody resumes at once is not decided again for the same failures', () => {
    const world = new World()
    const decider = new Process()
    world.pass(time - minute, decider)
    while (!decider.isPaused) world.pass(lookMs, decider)
    world.resume()
    world.pass(0.75 * time, decider)
    expect(decider.isPaused).toBe(false)
  })

  test('that a former owner decides without having read that somebody resumed it does not count', () => {
    const world = new World()
    const decider = new Process()
    const former = new Process()
    const decidedByFormer = () => {
      world.fail()
      world.read(former)
      return world.decided(former)
    }
    world.pass(time, decider, decidedByFormer)
    world.nowMs += minute
    const late = decidedByFormer()
    expect(late).toMatchObject([{ kind: 'paused' }])
    world.look(decider)
    world.resume()
    for (const record of late) world.write(encodePause(record))
    for (const process of [decider, new Process()]) {
      world.read(process)
      expect(process.isPaused).toBe(false)
    }
  })

  test.each([
    ['other URLs', { urls: 'u2' }],
    ['no wish for pauses', { autoPauseMs: 0 }],
  ])('is over when the catalog has %s', (_, edit) => {
    const { world, decider } = World.paused()
    world.destinations.set('crm', { ...crm, ...edit })
    world.pass(minute, decider, () => undefined)
    expect(decider.isPaused).toBe(false)
    expect(world.notices.at(-1)).toMatchObject({ kind: 'resumed', cause: 'catalog' })
  })

  test('stays while the catalog has the destination off', () => {
    const { world, decider } = World.paused()
    world.destinations.set('crm', { ...crm, state: 'off' })
    world.pass(time, decider, () => undefined, minute)
    expect(decider.isPaused).toBe(true)
  })

  test('is forgotten when the catalog has the destination no more', () => {
    const { world, decider } = World.paused()
    world.destinations.clear()
    world.pass(minute, decider, () => undefined)
    expect(decider.board.pauses.known).toEqual([])
  })
})
