import { expect, test } from 'vitest'
import { defaultLimits } from '../../../../src/message/limits.ts'
import { checkRule, previewOf, type Rule } from '../../../../src/roles/preview/preview.ts'

function previewed(rule: Rule, ...messages: readonly unknown[]) {
  const checked = checkRule(rule)
  if (!checked.ok) return checked.faults
  const tried = messages.map((message) => ({ value: Buffer.from(JSON.stringify(message)), atMs: 0 }))
  return previewOf(checked.destination, tried, defaultLimits).map(({ result, detail }) =>
    detail === null ? result : `${result}: ${detail}`,
  )
}

const order = { type: 'track', event: 'E', userId: 'u1', messageId: 'm1', properties: { total: 30 } }

test('each message is said what a destination with this filter does with it', () => {
  const filter = { types: ['track'], condition: 'properties.total > 20' }
  expect(
    previewed(
      { filter },
      order,
      { ...order, properties: { total: 10 } },
      { ...order, properties: {} },
      { ...order, type: 'page' },
      { type: 'delete', userId: 'u1' },
      { type: 'track' },
      5,
    ),
  ).toEqual([
    'passes',
    'excluded',
    'missing_field: the message has no such field at character 12: properties.total',
    'excluded',
    'passes',
    expect.stringMatching(/^refused: \w+: /),
    expect.stringMatching(/^refused: not_an_object: /),
  ])
  expect(previewed({ filter: { condition: 'int(event) == 1' } }, order)).toEqual([
    'failed: int conversion error at character 1',
  ])
  expect(previewed({}, order)).toEqual(['passes'])
})

test('the mapping that is for a message is named, with the message and the request that it makes of it', () => {
  const mappings = [
    { name: 'people', condition: 'type == "identify"', body: { id: { '@path': '$.userId' } } },
    { condition: 'event == "E"', method: 'PUT', path: '/u/{{userId}}', body: { n: 1 } },
    { condition: 'event == "F"', path: '/{{properties.gone}}', body: {} },
  ]
  const checked = checkRule({ filter: { condition: 'type != "page"' }, mappings })
  if (!checked.ok) throw new Error(checked.faults.join(' '))
  const tried = [
    order,
    { type: 'identify', userId: 'u1' },
    { ...order, event: 'F' },
    { ...order, event: 'G' },
    { ...order, type: 'page' },
    {},
  ].map((message) => ({ value: Buffer.from(JSON.stringify(message)), atMs: 0 }))
  const results = previewOf(checked.destination, tried, defaultLimits)
  expect(results.map(({ result, mapping }) => [result, mapping])).toEqual([
    ['passes', { place: 1, name: null }],
    ['passes', { place: 0, name: 'people' }],
    ['mapping_failed', { place: 2, name: null }],
    ['excluded', null],
    ['excluded', null],
    ['refused', null],
  ])
  expect(results[0]?.request).toMatchObject({ method: 'PUT', path: '/u/u1', body: '{"n":1}' })
  expect(JSON.parse(results[0]?.message ?? '')).toMatchObject({ ...order, version: 1 })
  expect(results.map(({ message }) => message === null)).toEqual([false, false, false, false, false, true])
})

test('faults are those of the catalog, by the names of the rule', () => {
  expect(previewed({ filter: { condition: 'nope == 1', events: [] } })).toEqual([
    expect.stringContaining('filter.events has too few entries'),
    expect.stringContaining('filter.condition has a fault: unknown variable: nope at character 1'),
  ])
  expect(previewed({ filter: 5 })).toEqual([expect.stringContaining('filter must be')])
})
