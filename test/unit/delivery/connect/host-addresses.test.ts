import { describe, expect, test } from 'vitest'
import { HostAddresses, hostAddressesOf } from '../../../../src/delivery/connect/host-addresses.ts'

const a = '192.0.2.1'
const b = '192.0.2.2'
const c = '192.0.2.3'

/** Addresses of a host, with a clock that the test moves, and with answers that the test gives. */
function host(answer: readonly string[]) {
  const state = { nowMs: 1_000_000, answer, lookups: 0, isFailing: false }
  const addresses = new HostAddresses(
    'name.test',
    (_name, found) => {
      state.lookups++
      if (state.isFailing) found(new Error('no server answers'), [])
      else found(null, state.answer)
    },
    () => state.nowMs,
  )

  /** Opens a connection, and returns its address. `reached`: the address where it ends. */
  function open(reached?: string): string {
    const [first = ''] = addresses.inOrder(state.answer)
    addresses.dialling(first)
    addresses.dialled(first, reached ?? first)
    return reached ?? first
  }

  function request(address: string, times: number): void {
    for (let nth = 0; nth < times; nth++) addresses.requested(address)
  }

  return { state, addresses, open, request }
}

function others(all: readonly string[], but: string): readonly string[] {
  return all.filter((address) => address !== but)
}

describe('the name of open connections', () => {
  test('is looked up again every five seconds, and not while nothing is sent', () => {
    const { state, addresses } = host([a])
    addresses.lookAgain()
    addresses.lookAgain()
    expect(state.lookups).toBe(1)
    state.nowMs += 4_999
    addresses.lookAgain()
    expect(state.lookups).toBe(1)
    state.nowMs += 1
    addresses.lookAgain()
    expect(state.lookups).toBe(2)
  })

  test('has the addresses of the last answer', () => {
    const { state, addresses } = host([a, b])
    addresses.lookAgain()
    expect([addresses.has(a), addresses.has(b), addresses.has(c), addresses.has(undefined)]).toEqual([
      true,
      true,
      false,
      false,
    ])
    state.answer = [b, c]
    state.nowMs += 5_000
    addresses.lookAgain()
    expect([addresses.has(a), addresses.has(b), addresses.has(c)]).toEqual([false, true, true])
  })

  test('keeps its addresses while no lookup succeeds', () => {
    const { state, addresses } = host([a])
    addresses.lookAgain()
    state.isFailing = true
    state.nowMs += 5_000
    addresses.lookAgain()
    expect(addresses.has(a)).toBe(true)
  })

  test.each(['http://192.0.2.1:8080', 'https://[2001:db8::1]', 'http://[::1]:1'])(
    'is none if the host is an address: %s',
    (origin) => {
      expect(hostAddressesOf(origin, () => undefined)).toBeUndefined()
    },
  )
})

describe('new connections', () => {
  test('go to the addresses in turn, also if none of them has had a request yet', () => {
    const { open } = host([a, b])
    const opened = Array.from({ length: 10 }, () => open())
    expect(opened.filter((address) => address === a)).toHaveLength(5)
  })

  test('go to the address with the fewest requests', () => {
    const { open, request } = host([a, b])
    const first = open()
    request(first, 5)
    expect(open()).toBe(others([a, b], first)[0])
  })

  test('go to IPv6 addresses only if the name has no other ones', () => {
    const ipv6 = ['2001:db8::1', '2001:db8::2']
    const { addresses, request } = host([a, ...ipv6])
    const both = host(ipv6)
    expect(addresses.inOrder([a, ...ipv6]).toSorted()).toEqual([a, ...ipv6].toSorted())
    addresses.dialling(a)
    request(a, 100)
    expect(addresses.areShared).toBe(false)
    expect(new Set([both.open(), both.open()])).toEqual(new Set(ipv6))
  })

  test('avoid an address that was not reached, for a minute at first and for ten minutes at most', () => {
    const { state, addresses, open } = host([a, b])
    addresses.inOrder([a, b])
    const minuteMs = 60_000
    for (const minutes of [1, 2, 4, 8, 10, 10]) {
      addresses.dialling(a)
      addresses.dialled(a, b)
      state.nowMs += minutes * minuteMs - 1
      expect(Array.from({ length: 20 }, () => open())).not.toContain(a)
      state.nowMs += 1
      expect(addresses.inOrder([a, b]).toSorted()).toEqual([a, b])
      expect(addresses.isAnotherDue(b)).toBe(true)
    }
    addresses.dialled(a, a)
    addresses.dialled(a, b)
    state.nowMs += minuteMs
    expect(addresses.isAnotherDue(b)).toBe(true)
  })

  test('avoid no address if none was reached', () => {
    const { addresses, open } = host([a, b])
    addresses.inOrder([a, b])
    addresses.dialled(a, undefined)
    addresses.dialled(b, undefined)
    expect(new Set(Array.from({ length: 4 }, () => open()))).toEqual(new Set([a, b]))
  })
})

describe('the requests to a host with several addresses', () => {
  test('are shared only while the hook is busy', () => {
    const { state, addresses, open, request } = host([a, b])
    const first = open()
    request(first, 7)
    expect(addresses.areShared).toBe(false)
    request(first, 1)
    expect(addresses.areShared).toBe(true)
    state.nowMs += 10_000
    request(first, 1)
    expect(addresses.areShared).toBe(true)
    state.nowMs += 10_000
    request(first, 1)
    expect(addresses.areShared).toBe(false)
  })

  test('need another connection when an address lags by eight of them, and one is enough', () => {
    const { addresses, open, request } = host([a, b])
    const first = open()
    request(first, 6)
    expect(addresses.isAnotherDue(first)).toBe(false)
    request(first, 1)
    expect(addresses.isAnotherDue(first)).toBe(true)
    const [second = ''] = others([a, b], first)
    addresses.dialling(second)
    expect(addresses.isAnotherDue(first)).toBe(false)
    expect(addresses.isLess(second, first)).toBe(false)
  })

  test('do not all go to an address that is new', () => {
    const { state, addresses, open, request } = host([a, b])
    open()
    open()
    for (let nth = 0; nth < 1_000; nth++) request(nth % 2 === 0 ? a : b, 1)
    state.answer = [a, b, c]
    state.nowMs += 5_000
    addresses.lookAgain()
    expect(addresses.isAnotherDue(a)).toBe(true)
    let behind = 0
    while (addresses.isLess(c, a)) {
      addresses.requested(c)
      behind++
    }
    expect(behind).toBeLessThanOrEqual(16)
  })

  test('go to eight addresses at most', () => {
    const many = Array.from({ length: 60 }, (_, index) => `198.51.100.${index}`)
    const { open, request } = host(many)
    const opened = new Set<string>()
    for (let nth = 0; nth < 100; nth++) {
      const address = open()
      opened.add(address)
      request(address, 3)
    }
    expect(opened.size).toBe(8)
  })
})
