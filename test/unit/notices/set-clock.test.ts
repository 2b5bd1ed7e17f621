import { expect, test } from 'vitest'
import { Board } from '../../../src/notices/board.ts'
import { Decider, type Situation } from '../../../src/notices/decider.ts'
import type { Notice } from '../../../src/notices/notice.ts'
import { encodeForgotten, encodeReport, encodeTold, type Report } from '../../../src/notices/notice-record.ts'
import { hour, minute, second, terms } from './terms.ts'

/** Tests of what a decider does when somebody sets the clock of its machine forward or back. */

const nothing: Report = { failing: [], answered: [], counts: [] }
const main = { destinationId: 'crm', hookId: 'main' }

class World {
  nowMs = 10_000 * hour
  behind: Situation['behind'] = []
  readonly #board = new Board()
  readonly #decider = new Decider(terms)

  #take(record: ReturnType<typeof encodeReport>): void {
    this.#board.take({ ...record, offset: this.#board.position }, this.nowMs)
  }

  report(report: Partial<Report>, worker = 'w1'): void {
    this.#take(encodeReport(worker, { ...nothing, ...report }))
  }

  fails(): void {
    const times = { sinceMs: this.nowMs, lastFailedMs: this.nowMs, lastOutcome: 'timeout' }
    this.report({ failing: [{ ...main, ...times }] })
  }

  answers(): void {
    this.report({ answered: [{ ...main, atMs: this.nowMs }] })
  }

  dies(count: number): void {
    const counts = [{ destinationId: 'crm', paced: {}, dead_letters: { expired: count } }]
    this.report({ counts }, 'w2')
  }

  /** Decides for `ms` milliseconds, every 15 seconds. Returns the kinds of the notices. */
  pass(ms: number): readonly Notice['kind'][] {
    const notices: Notice[] = []
    for (let passedMs = 0; passedMs < ms; passedMs += 15 * second) {
      this.nowMs += 15 * second
      const { nowMs, behind } = this
      const decided = this.#decider.decide(this.#board, { nowMs, behind, secrets: [], isKnown: () => true })
      for (const key of decided.forgotten) this.#take(encodeForgotten(key))
      for (const notice of decided.notices)
        for (const isSent of [false, true]) this.#take(encodeTold({ notice, isSent }))
      notices.push(...decided.notices)
    }
    return notices.map(({ kind }) => kind)
  }
}

test('a hook that works is told to have recovered as soon as always where the clock is set back', () => {
  const world = new World()
  world.fails()
  expect(world.pass(minute)).toEqual(['failing'])
  world.answers()
  expect(world.pass(15 * second)).toEqual([])
  world.nowMs -= 2 * hour
  expect(world.pass(minute)).toEqual(['recovered'])
})

test('a destination that lacks values is told of as soon as always where the clock is set back', () => {
  const world = new World()
  world.behind = [{ destinationId: 'crm', spaceId: 'space' }]
  expect(world.pass(minute)).toEqual([])
  world.nowMs -= 2 * hour
  expect(world.pass(6 * minute)).toEqual(['needs_backfill'])
})

test('a notice of a clock that was far ahead prevents no notice once the clock is right', () => {
  const world = new World()
  world.nowMs += 5_000 * hour
  world.fails()
  world.dies(10)
  expect(world.pass(minute)).toEqual(['failing', 'dead_letters'])
  world.answers()
  expect(world.pass(minute)).toEqual(['recovered'])
  world.nowMs -= 5_000 * hour
  world.fails()
  world.dies(10)
  expect(world.pass(minute)).toEqual(['failing', 'dead_letters'])
})

test('counts of a clock that was ahead are dropped a window later, as always', () => {
  const world = new World()
  world.nowMs += 5_000 * hour
  world.dies(5)
  expect(world.pass(minute)).toEqual([])
  world.nowMs -= 5_000 * hour
  world.dies(1)
  expect(world.pass(hour + minute)).toEqual([])
  world.dies(5)
  expect(world.pass(minute)).toEqual([])
})
