import { expect, test } from 'vitest'
import { formatFault } from '../../../src/catalog/fault.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

/** Returns the faults of a catalog whose only destination has this filter. */
function faultsOf(filter: string): readonly string[] {
  const text = `
sources: [{ id: shop }]
destinations:
  - id: crm
    sources: [shop]
    filter: ${filter}
    hooks: [{ url: https://example.com/hook }]
`
  const parsed = parseCatalog(text, { file: 'catalog.yaml', variables: {} })
  return parsed.ok ? [] : parsed.faults.map(formatFault)
}

test.each([
  '{ types: [track, identify, page, screen, group, alias] }',
  '{ events: [Order Completed] }',
  '{ historical: false }',
  '{ types: [page, track], events: [Order Completed, "1", "Cart *"] }',
  '{ sample: { percent: 0.5 } }',
  '{ condition: properties.total > 100 }',
])('the filter %s is accepted', (filter) => {
  expect(faultsOf(filter)).toEqual([])
})

const advice =
  'write CEL that is true or false, such as event == "Order Completed" && properties.total > 100, on type, event, name, userId, anonymousId, groupId, previousId, messageId, timestamp, receivedAt, sentAt, properties, traits, context, integrations, message'

const unknownType = 'is not a value that is known here; write identify, track, page, screen, group or alias'

test.each([
  [
    '{}',
    ':6:13: crm: destinations[0].filter: is empty; write types, events, historical, sample or condition, or remove the key',
  ],
  ['{ types: [] }', ':6:22: crm: destinations[0].filter.types: has too few entries; write at least 1'],
  ['{ types: [track, event] }', `:6:30: crm: destinations[0].filter.types[1]: ${unknownType}`],
  ['{ types: [delete] }', `:6:23: crm: destinations[0].filter.types[0]: ${unknownType}`],
  [
    '{ events: Order Completed }',
    ':6:23: crm: destinations[0].filter.events: must be a list, and is text; write each entry after "- "',
  ],
  [
    '{ events: [a, b, a] }',
    ':6:23: crm: destinations[0].filter.events: names something twice; name each once',
  ],
  ['{ types: [Track], events: [a] }', `:6:23: crm: destinations[0].filter.types[0]: ${unknownType}`],
  [
    '{ types: [page], events: [] }',
    ':6:38: crm: destinations[0].filter.events: has too few entries; write at least 1',
  ],
  [
    '{ types: [page], events: [a] }',
    ':6:38: crm: destinations[0].filter.events: has no effect, because types lacks track; add track to types, or remove events',
  ],
  [
    '{ condition: event = "a" }',
    `:6:26: crm: destinations[0].filter.condition: can't be read: unexpected character: = at character 7; ${advice}`,
  ],
  [
    '{ condition: event.matches("a+") }',
    ':6:26: crm: destinations[0].filter.condition: has matches(), whose regular expressions can take any time at character 1; use glob(), such as event.glob("Order *"), or startsWith(), endsWith(), contains()',
  ],
  [
    '{ sample: { percent: 0 } }',
    ':6:34: crm: destinations[0].filter.sample.percent: is too small; write more than 0',
  ],
  [
    '{ sample: { percent: "5" } }',
    ':6:34: crm: destinations[0].filter.sample.percent: must be a number, and is text; write a number such as 0.5, without quotes',
  ],
])('the filter %s is refused, and the fault says where and what to write', (filter, fault) => {
  expect(faultsOf(filter)).toEqual([`catalog.yaml${fault}`])
})

/** Returns the faults of a catalog whose only destination has a filter and these sources. */
function faultsWithSources(sources: string): readonly string[] {
  const text = `
sources: [{ id: shop }, { id: vips, kind: audiences }]
destinations:
  - id: crm
    sources: ${sources}
    filter: { types: [track] }
    hooks: [{ url: https://example.com/hook }]
`
  const parsed = parseCatalog(text, { file: 'catalog.yaml', variables: {} })
  return parsed.ok ? [] : parsed.faults.map(formatFault)
}

test('a filter that only audiences would reach is refused, because it would filter nothing', () => {
  expect(faultsWithSources('[vips]')).toEqual([
    'catalog.yaml:6:13: crm: destinations[0].filter: has no effect, because all sources of the destination are audiences; remove the filter, or add a source of events to sources',
  ])
})

test.each(['[vips, shop]', '[shop]', '[]'])(
  'a filter of a destination with the sources %s is accepted',
  (sources) => {
    expect(faultsWithSources(sources)).toEqual([])
  },
)

test('a number that has to be over 0 is refused with advice, and not with a bug', () => {
  const text = `
sources: []
destinations: [{ id: crm, sources: [], rateLimit: { perSecond: 0 }, hooks: [{ url: https://example.com/ }] }]
`
  const parsed = parseCatalog(text, { file: 'catalog.yaml', variables: {} })
  expect(parsed.ok ? [] : parsed.faults.map(formatFault)).toEqual([
    'catalog.yaml:3:64: crm: destinations[0].rateLimit.perSecond: is too small; write more than 0',
  ])
})
