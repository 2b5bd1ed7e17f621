/* oxlint-disable unicorn/no-thenable -- the directive @if has this key; no function, so no await calls it */
import { enter } from '../../src/message/enter.ts'
import type { Entered } from '../../src/message/entered.ts'
import { route, type Routable } from '../../src/routing/route.ts'
import { outgoingOf } from '../../src/shape/choice.ts'
import type { Mapping } from '../../src/shape/definition.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'

/** A mapping with ten fields, as customers write them. */
const tenFields: readonly Mapping[] = [
  {
    body: {
      event: { '@path': '$.event' },
      user: { '@path': '$.userId' },
      total: { '@path': '$.properties.total' },
      currency: { '@case': { operator: 'lower', value: { '@path': '$.properties.currency' } } },
      text: { '@template': '{{event}} by {{userId}}' },
      id: { '@replace': { pattern: '-', replacement: '', value: { '@path': '$.messageId' } } },
      ip: { '@if': { exists: { '@path': '$.context.ip' }, then: { '@path': '$.context.ip' }, else: 'none' } },
      library: { '@path': '$.context.library.name' },
      at: { '@path': '$.timestamp' },
      lines: {
        '@arrayPath': ['$.properties.products', { sku: { '@path': '$.sku' }, price: { '@path': '$.price' } }],
      },
    },
  },
]

/** 100 destinations of one source, of which 50 have a condition of their own with four terms. */
const destinations = 100
const withCondition = 50

/**
 * Measures what conditions cost a message, in one process without Kafka: the message is routed to 100
 * destinations, of which 50 have a condition. The sides take turns, ten times. All conditions are false only
 * in their last term, so that all of their terms are evaluated.
 */
export async function runConditionsBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 10, messages: count = 20_000 } = settings
  const messages = Array.from({ length: 200 }, (_, at) => enteredOf(at))
  const sides = {
    none: plain(destinations),
    types: plain(destinations, (at) => ({ types: ['track'], events: undefined, at })),
    conditions: plain(destinations, (at) =>
      at < withCondition ? { types: undefined, events: undefined, condition: conditionAt(at) } : undefined,
    ),
  }
  const measured = { none: [] as number[], types: [] as number[], conditions: [] as number[] }
  for (let run = 0; run <= runs; run++)
    for (const side of ['none', 'types', 'conditions'] as const) {
      const us = await routed(messages, sides[side], count)
      // The first round warms up.
      if (run > 0) measured[side].push(us)
    }
  const mapped = Array.from({ length: runs + 1 }, () => mappedUs(messages, count)).slice(1)
  const [none, types, conditions] = [measured.none, measured.types, measured.conditions].map(median)
  if (none === undefined || types === undefined || conditions === undefined)
    throw new BenchmarkFailure('nothing was measured')
  const figures = {
    condition_us: round((conditions - none) / withCondition, 2),
    message_us: round(conditions, 1),
    message_without_conditions_us: round(none, 2),
    message_with_types_us: round(types, 2),
    mapping_us: round(median(mapped), 1),
    destinations,
    with_condition: withCondition,
    runs,
    node: process.version,
  }
  const table = Object.entries(figures).map(([name, value]) => rowOf(name, [String(value)]))
  return { table: table.join('\n'), figures }
}

function plain(count: number, filterAt: (at: number) => object | undefined = () => undefined): Routable[] {
  return Array.from({ length: count }, (_, at) => {
    const filter = filterAt(at)
    return { id: `d${at}`, state: 'on', ...(filter && { filter: Object(filter) }) }
  })
}

function conditionAt(at: number): string {
  return `event == "Order Completed" && properties.total > ${at} && properties.currency in ["EUR", "CHF"] && userId != "user-${at % 7}"`
}

function enteredOf(at: number): Entered {
  const message = {
    type: 'track',
    event: 'Order Completed',
    userId: `user-${at}`,
    messageId: `message-${at}`,
    timestamp: '2026-07-23T14:03:12.402Z',
    context: { ip: '203.0.113.7', library: { name: 'analytics-node', version: '2.1.0' } },
    properties: {
      total: 100 + at,
      currency: 'EUR',
      coupon: null,
      products: [1, 2, 3].map((sku) => ({ sku: `sku-${sku}`, name: 'Socks', price: 10.5, quantity: 2 })),
    },
  }
  const origin = { topic: 'events', partition: 0, offset: at, timestampMs: 0 }
  const entered = enter(Buffer.from(JSON.stringify(message)), origin)
  if (!entered.ok) throw new BenchmarkFailure(`the message is refused: ${entered.detail}`)
  return entered.message
}

/** Returns the microseconds of CPU that routing a message takes. */
async function routed(messages: readonly Entered[], to: readonly Routable[], count: number): Promise<number> {
  let sent = 0
  const before = process.cpuUsage()
  for (let at = 0; at < count; at++) {
    const message = messages[at % messages.length]
    if (message !== undefined) sent += route(message, to).to.length
  }
  const { user, system } = process.cpuUsage(before)
  if (sent === 0) throw new BenchmarkFailure('no message was routed')
  return (user + system) / count
}

/** Returns the microseconds of CPU that a mapping takes for a message, with all that is parsed for it. */
function mappedUs(messages: readonly Entered[], count: number): number {
  const before = process.cpuUsage()
  for (let at = 0; at < count; at++) {
    const message = messages[at % messages.length]
    const outgoing = message && outgoingOf(tenFields, { body: message.body, isOwed: false })
    if (outgoing?.kind !== 'shaped') throw new BenchmarkFailure('no request was made')
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}
