import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FetchPosition } from '../../../../src/kafka/wire/fetch-message.ts'
import { FetchSession, isOfSession, type SessionRequest } from '../../../../src/kafka/fetch/fetch-session.ts'

/** A simulated broker that serves fetches by sessions, as KIP-227 describes. */
class SessionBroker {
  hasRoom = true
  readonly #sessions = new Map<number, { epoch: number; offsets: Map<string, number> }>()
  #lastId = 0

  /** Returns the partitions and offsets that the broker reads from, or the error code of its refusal. */
  fetch({ sessionId, sessionEpoch, positions, forgotten }: SessionRequest) {
    if (sessionEpoch === 0) {
      this.#sessions.delete(sessionId)
      const offsets = new Map(positions.map((position) => [nameOf(position), position.offset]))
      if (!this.hasRoom) return { errorCode: 0, sessionId: 0, offsets }
      this.#sessions.set(++this.#lastId, { epoch: 1, offsets })
      return { errorCode: 0, sessionId: this.#lastId, offsets }
    }
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return { errorCode: 70, sessionId: 0 }
    if (session.epoch !== sessionEpoch) return { errorCode: 71, sessionId: 0 }
    session.epoch++
    for (const position of positions) session.offsets.set(nameOf(position), position.offset)
    for (const one of forgotten) session.offsets.delete(nameOf(one))
    return { errorCode: 0, sessionId, offsets: session.offsets }
  }

  forgetAll(): void {
    this.#sessions.clear()
  }
}

function nameOf({ topic, partition }: Pick<FetchPosition, 'topic' | 'partition'>): string {
  return `${topic}/${partition}`
}

const position = fc.record({
  topic: fc.constantFrom('events', 'retry.1m', 'é'),
  partition: fc.nat({ max: 3 }),
  offset: fc.nat({ max: 3 }),
  leaderEpoch: fc.constant(0),
})
const wanted = fc.uniqueArray(position, { minLength: 1, maxLength: 8, selector: nameOf })
const round = fc.record({
  wanted,
  fate: fc.constantFrom(
    'answered',
    'answered',
    'answered',
    'never sent',
    'answer lost',
    'forgotten',
    'no room',
  ),
})

describe('a fetch session', () => {
  test('has the broker read what is wanted, whatever is lost', () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(fc.array(round, { minLength: 1, maxLength: 30 }), (rounds) => {
        const session = new FetchSession()
        const broker = new SessionBroker()
        for (const { wanted: positions, fate } of rounds) {
          broker.hasRoom = fate !== 'no room'
          if (fate === 'forgotten') broker.forgetAll()
          const request = session.next(positions)
          if (fate === 'never sent') {
            session.lost()
            continue
          }
          const answer = broker.fetch(request)
          seen.add(`${fate}: ${answer.errorCode}`)
          if (fate === 'answer lost') {
            session.lost()
            continue
          }
          session.answered(answer)
          if (answer.offsets === undefined) expect(isOfSession(answer.errorCode)).toBe(true)
          else {
            const expected = positions.map((one): [string, number] => [nameOf(one), one.offset])
            expect(sorted(answer.offsets)).toEqual(sorted(expected))
          }
        }
      }),
      { numRuns: 2_000 },
    )
    expect([...seen].sort()).toEqual([
      'answer lost: 0',
      'answered: 0',
      'forgotten: 0',
      'forgotten: 70',
      'no room: 0',
    ])
  })

  test('says nothing of what has not changed', () => {
    const session = new FetchSession()
    const broker = new SessionBroker()
    const positions = [at('a', 0, 5), at('a', 1, 7), at('b', 0, 0)]
    session.answered(broker.fetch(session.next(positions)))
    expect(session.next(positions)).toEqual({ sessionId: 1, sessionEpoch: 1, positions: [], forgotten: [] })
    session.answered({ errorCode: 0, sessionId: 1 })
    expect(session.next([at('a', 0, 6), at('b', 0, 0)])).toEqual({
      sessionId: 1,
      sessionEpoch: 2,
      positions: [at('a', 0, 6)],
      forgotten: [{ topic: 'a', partition: 1 }],
    })
  })

  test('tells of another leader, whose epoch the broker compares with its own', () => {
    const session = new FetchSession()
    session.answered(new SessionBroker().fetch(session.next([at('a', 0, 5), at('a', 1, 5)])))
    const { positions } = session.next([at('a', 0, 5, 1), at('a', 1, 5)])
    expect(positions).toEqual([at('a', 0, 5, 1)])
  })

  test('ends the one before where nobody knows what the broker has heard', () => {
    const session = new FetchSession()
    session.answered(new SessionBroker().fetch(session.next([at('a', 0, 5)])))
    session.next([at('a', 0, 6)])
    session.lost()
    expect(session.next([at('a', 0, 6)])).toMatchObject({ sessionId: 1, sessionEpoch: 0 })
  })

  test.each([
    ['a session', 1],
    ['none, since the broker has no room', 0],
  ])('with %s has all partitions served where an answer has room for one', (_what, sessionId) => {
    const idle = Array.from({ length: 48 }, (_, partition) => at('idle', partition, 0))
    const busy = Array.from({ length: 6 }, (_, partition) => at('busy', partition, 0))
    const session = new FetchSession()
    const served = new Map(busy.map((one) => [nameOf(one), 0]))
    /**
     * The partitions in the order in which the broker serves them. A partition that was served goes to the
     * end, and so does a partition that the client names again.
     */
    let order: string[] = []
    for (let fetch = 0; fetch < 600; fetch++) {
      // All busy partitions are paused together, and resumed together.
      const now = fetch % 3 === 2 ? idle : [...idle, ...busy]
      const { positions, forgotten, sessionEpoch } = session.next(
        now.map((one) => ({ ...one, offset: served.get(nameOf(one)) ?? 0 })),
      )
      const told = positions.map(nameOf)
      const gone = new Set(sessionEpoch === 0 ? order : forgotten.map(nameOf))
      order = [
        ...order.filter((name) => !gone.has(name)),
        ...told.filter((name) => gone.has(name) || !order.includes(name)),
      ]
      session.answered({ errorCode: 0, sessionId })
      const first = order.find((name) => served.has(name))
      if (first === undefined) continue
      served.set(first, (served.get(first) ?? 0) + 1)
      order = [...order.filter((name) => name !== first), first]
    }
    const counts = [...served.values()]
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(400)
    expect(Math.min(...counts)).toBeGreaterThan(25)
  })
})

function at(topic: string, partition: number, offset: number, leaderEpoch = 0): FetchPosition {
  return { topic, partition, offset, leaderEpoch }
}

function sorted(entries: Iterable<[string, number]>): [string, number][] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
}
