import { expect, onTestFinished, test } from 'vitest'
import { createResolver, type LookupOutcome, type Resolved } from '../../../src/delivery/connect/resolver.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { standStill } from '../../support/stand-still.ts'

const addressesOf = (host: number) => ({ A: `192.0.2.${host}`, AAAA: `2001:db8::${host}` })

test.each([
  ['a name that was not known', 0, 2_700],
  ['a name that was found before', 1, 700],
])(
  'the answers for %s are used, though the process is suspended before it reads them',
  async (_, earlier, ms) => {
    let asked = 0
    const server = await startDnsServer(({ type }) => {
      asked++
      // The server writes its answer first.
      if (asked === 2 * (earlier + 1)) setImmediate(() => standStill(ms))
      return { addresses: [addressesOf(asked > 2 * earlier ? 2 : 1)[type]], ttlSeconds: 60 }
    })
    onTestFinished(() => server.stop())
    let nowMs = 0
    const outcomes: LookupOutcome[] = []
    const resolver = createResolver({
      servers: [server.address],
      onLookup: (outcome) => outcomes.push(outcome),
      now: () => nowMs,
    })
    onTestFinished(() => resolver.close())
    const find = (): Promise<Resolved> => new Promise((resolve) => resolver.resolve('a.test', resolve))
    for (let lookup = 0; lookup < earlier; lookup++) await find()
    nowMs += 60_000
    const found = await find()
    expect(found.ok && found.addresses.toSorted()).toEqual(Object.values(addressesOf(2)))
    expect(outcomes).toEqual(Array.from({ length: earlier + 1 }, () => 'found'))
  },
)
