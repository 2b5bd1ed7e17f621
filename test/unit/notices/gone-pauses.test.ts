import { expect, test } from 'vitest'
import { Board } from '../../../src/notices/board.ts'
import { encodeGone } from '../../../src/notices/gone-record.ts'
import {
  goneToForget,
  noticesOfPauses,
  type PausableDestination,
  PauseDecider,
} from '../../../src/notices/pause-decider.ts'
import { encodePause } from '../../../src/notices/pause-record.ts'

const crm: PausableDestination = {
  state: 'on',
  hookIds: ['main', 'spare'],
  contents: new Map([
    ['main', 'm1'],
    ['spare', 's1'],
  ]),
  urls: 'u1',
  autoPauseMs: 0,
}

/** The topic `notices`, and a process that decides about pauses. */
class World {
  readonly board = new Board()
  destination: PausableDestination = crm
  nowMs = 1_000
  readonly #decider = new PauseDecider({ staleMs: 75_000, steadyMs: 60_000 })

  gone(hookId: string, content: string): void {
    const value = { content, atMs: this.nowMs, lastOutcome: 'status 410', readTo: this.board.position }
    this.#take(encodeGone({ destinationId: 'crm', hookId, content: value }))
  }

  resume(): void {
    const content = { atMs: this.nowMs, by: 'ann', cause: 'asked' } as const
    this.#take(encodePause({ kind: 'resumed', destinationId: 'crm', content }))
  }

  /** Makes a decision, and returns what was written. */
  decide(): readonly string[] {
    this.nowMs += 15_000
    const destinationOf = () => this.destination
    const decided = this.#decider.decide(this.board, { nowMs: this.nowMs, isSound: false, destinationOf })
    const forgotten = goneToForget(this.board, destinationOf)
    for (const record of forgotten) this.#take(encodeGone(record))
    for (const record of decided) this.#take(encodePause(record))
    return [
      ...forgotten.map(({ hookId }) => `forgotten ${hookId}`),
      ...decided.map(({ kind, content }) => (content === undefined ? `no ${kind}` : kind)),
    ]
  }

  #take(record: ReturnType<typeof encodeGone>): void {
    this.board.take({ ...record, offset: this.board.position }, this.nowMs)
  }
}

test('once all hooks are gone, a record of the pause is written, once, and it is told', () => {
  const world = new World()
  world.gone('main', 'm1')
  expect(world.decide()).toEqual([])
  world.gone('spare', 's1')
  expect(world.decide()).toEqual(['paused'])
  expect(world.decide()).toEqual([])
  expect(world.board.pauses.pauseOf('crm')).toMatchObject({ cause: 'gone', lastOutcome: 'status 410' })
  expect(noticesOfPauses(world.board, true).notices).toMatchObject([{ kind: 'auto_paused', sinceMs: 1_000 }])
})

test('an edit of one hook ends the pause, and the record about this hook is removed', () => {
  const world = new World()
  world.gone('main', 'm1')
  world.gone('spare', 's1')
  world.decide()
  world.destination = { ...crm, contents: new Map([...crm.contents, ['main', 'm2']]) }
  expect(world.decide()).toEqual(['forgotten main', 'resumed'])
})

test('after a resumption nothing is paused, and the records are removed', () => {
  const world = new World()
  world.gone('main', 'm1')
  world.gone('spare', 's1')
  world.decide()
  world.resume()
  expect(world.decide()).toEqual(['forgotten main', 'forgotten spare'])
  expect(world.decide()).toEqual([])
  expect(world.board.pauses.paused.size).toBe(0)
})

test('what the catalog has off or paused is not paused, and what may not be gone is not either', () => {
  for (const change of [{ state: 'off' }, { state: 'paused' }, { contents: new Map() }] as const) {
    const world = new World()
    world.destination = { ...crm, ...change }
    world.gone('main', 'm1')
    world.gone('spare', 's1')
    world.decide()
    expect(world.board.pauses.paused.size).toBe(0)
  }
})
