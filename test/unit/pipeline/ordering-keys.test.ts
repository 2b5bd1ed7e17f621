import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Sequenced, type OrderingKey, OrderingKeys } from '../../../src/pipeline/ordering-keys.ts'
import type { PropertyHeader } from '../../../src/message/record-headers.ts'

class Letter implements Sequenced<Letter> {
  readonly name: string
  readonly hasWaited: boolean
  readonly destinationId: string
  readonly property: PropertyHeader
  isAbandoned = false
  isUncertain = false
  orderingKey: OrderingKey<Letter> | undefined
  behind: Letter | undefined

  constructor(
    name: string,
    way: 'new' | 'waited' = 'new',
    names: Partial<PropertyHeader & { to: string }> = {},
  ) {
    this.name = name
    this.hasWaited = way === 'waited'
    this.destinationId = names.to ?? 'crm'
    this.property = { userId: 'u', spaceId: 's', property: 'p', since: name, ...names }
  }

  becomeUncertain(): void {
    this.isUncertain = true
  }
}

function setup() {
  const superseded: string[] = []
  const next: string[] = []
  const orderingKeys = new OrderingKeys<Letter>({
    superseded: ({ name }) => superseded.push(name),
    next: ({ name }) => next.push(name),
  })
  const enter = (letter: Letter): boolean => orderingKeys.enter(letter, letter.property)
  return { orderingKeys, enter, superseded, next }
}

describe('of one ordering key', () => {
  test('one goes on, and the next one when that has left', () => {
    const { orderingKeys, enter, next } = setup()
    const [a, b] = [new Letter('a'), new Letter('b')]
    expect([enter(a), enter(b)]).toEqual([true, false])
    expect(next).toEqual([])
    orderingKeys.leave(a)
    expect(next).toEqual(['b'])
    expect(b.orderingKey?.holder).toBe(b)
    expect(a.orderingKey).toBeUndefined()
  })

  test('a fresh one replaces all that waits, and not the one under way', () => {
    const { orderingKeys, enter, superseded, next } = setup()
    const a = new Letter('a')
    for (const letter of [a, new Letter('b'), new Letter('r', 'waited'), new Letter('c')]) enter(letter)
    expect(superseded).toEqual(['b', 'r'])
    expect(orderingKeys.waiting).toBe(1)
    orderingKeys.leave(a)
    expect(next).toEqual(['c'])
  })

  test('retries wait in line, behind a fresh one too: who is newer has to be judged', () => {
    const { orderingKeys, enter, superseded, next } = setup()
    const letters = [new Letter('a'), new Letter('b')]
    const retries = [new Letter('r', 'waited'), new Letter('q', 'waited')]
    for (const letter of [...letters, ...retries]) enter(letter)
    for (const letter of [...letters, ...retries]) orderingKeys.leave(letter)
    expect(next).toEqual(['b', 'r', 'q'])
    expect(superseded).toEqual([])
    expect(orderingKeys.size).toBe(0)
  })

  test('what an uncertain one leaves open goes over to the one that replaces it', () => {
    const { enter } = setup()
    const [a, r, b] = [new Letter('a'), new Letter('r', 'waited'), new Letter('b')]
    r.isUncertain = true
    for (const letter of [a, r, b]) enter(letter)
    expect(b.isUncertain).toBe(true)
    expect(a.isUncertain).toBe(false)
  })

  test('a fresh one that waits takes the place of the one before it', () => {
    const { orderingKeys, enter, next } = setup()
    const [a, b, r] = [new Letter('a', 'waited'), new Letter('b'), new Letter('r', 'waited')]
    a.isUncertain = true
    for (const letter of [a, b, r]) enter(letter)
    expect(orderingKeys.newestOf(a)).toBe(b)
    expect([a.orderingKey, b.orderingKey?.holder, b.isUncertain]).toEqual([undefined, b, true])
    expect(orderingKeys.newestOf(b)).toBe(b)
    orderingKeys.leave(a)
    expect(next).toEqual([])
    orderingKeys.leave(b)
    expect(next).toEqual(['r'])
  })

  test('a retry, or a fresh one that is abandoned, takes nobody’s place', () => {
    const { orderingKeys, enter } = setup()
    const [a, r] = [new Letter('a'), new Letter('r', 'waited')]
    enter(a)
    enter(r)
    expect(orderingKeys.newestOf(a)).toBe(a)
    const b = new Letter('b')
    enter(b)
    b.isAbandoned = true
    expect(orderingKeys.newestOf(a)).toBe(a)
  })

  test('those that wait can be taken away, and the others keep their order', () => {
    const { orderingKeys, enter, next } = setup()
    const letters = [new Letter('a'), ...['b', 'c', 'd', 'e'].map((name) => new Letter(name, 'waited'))]
    for (const letter of letters) enter(letter)
    expect(
      orderingKeys.takeWaiting(({ name }) => name === 'b' || name === 'd').map(({ name }) => name),
    ).toEqual(['b', 'd'])
    for (const letter of letters.filter(({ name }) => name !== 'b' && name !== 'd'))
      orderingKeys.leave(letter)
    expect(next).toEqual(['c', 'e'])
    expect([orderingKeys.size, orderingKeys.waiting]).toEqual([0, 0])
  })
})

test.each<[string, Partial<PropertyHeader & { to: string }>]>([
  ['user', { userId: 'v' }],
  ['space', { spaceId: 't' }],
  ['property', { property: 'q' }],
  ['destination', { to: 'ads' }],
])('another %s is another orderingKey', (_what, names) => {
  const { enter } = setup()
  expect(enter(new Letter('a'))).toBe(true)
  expect(enter(new Letter('b', 'new', names))).toBe(true)
})

test('ordering keys are the same only when all four ids are', () => {
  const part = fc.string({ unit: fc.constantFrom('a', ',', '1', '2'), minLength: 1, maxLength: 3 })
  const names = fc.record({ to: part, spaceId: part, property: part, userId: part })
  fc.assert(
    fc.property(names, names, (one, other) => {
      const { enter } = setup()
      enter(new Letter('a', 'new', one))
      expect(enter(new Letter('b', 'new', other))).toBe(JSON.stringify(one) !== JSON.stringify(other))
    }),
    { numRuns: 5_000 },
  )
})

test('whatever comes and goes, one of an ordering key is under way, none is lost, and nothing is kept', () => {
  const step = fc.record({
    user: fc.constantFrom('u', 'v'),
    does: fc.constantFrom('new', 'waited', 'leave', 'newest', 'take'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const going = new Map<string, Letter>()
      const waiting = new Set<Letter>()
      let made = 0
      const orderingKeys = new OrderingKeys<Letter>({
        superseded: (letter) => expect(waiting.delete(letter)).toBe(true),
        next(letter) {
          expect(waiting.delete(letter)).toBe(true)
          going.set(letter.property.userId, letter)
        },
      })
      const leave = (user: string): void => {
        const letter = going.get(user)
        if (letter === undefined) return
        going.delete(user)
        orderingKeys.leave(letter)
      }
      for (const { user, does } of steps) {
        const letter = going.get(user)
        if (does === 'leave') leave(user)
        else if (does === 'newest' && letter !== undefined) {
          const newest = orderingKeys.newestOf(letter)
          if (newest !== letter) expect(waiting.delete(newest)).toBe(true)
          going.set(user, newest)
        } else if (does === 'take') {
          for (const one of orderingKeys.takeWaiting(({ property }) => property.userId === user))
            expect(waiting.delete(one)).toBe(true)
        } else if (does === 'new' || does === 'waited') {
          const newcomer = new Letter(String(made++), does, { userId: user })
          waiting.add(newcomer)
          if (orderingKeys.enter(newcomer, newcomer.property)) {
            expect(letter).toBeUndefined()
            waiting.delete(newcomer)
            going.set(user, newcomer)
          } else expect(letter).toBeDefined()
        }
        expect([orderingKeys.size, orderingKeys.waiting]).toEqual([going.size, waiting.size])
        for (const one of going.values()) expect(one.orderingKey?.holder).toBe(one)
      }
      for (let user = [...going.keys()][0]; user !== undefined; user = [...going.keys()][0]) leave(user)
      expect([orderingKeys.size, orderingKeys.waiting, waiting.size]).toEqual([0, 0, 0])
    }),
    { numRuns: 2_000 },
  )
})
