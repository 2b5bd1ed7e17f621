import { expect, test } from 'vitest'
import { parseCatalogData } from '../../../src/catalog/parse.ts'

// What the catalog says of mappings: those that it takes, and the faults of others.

const oauth = {
  kind: 'oauth2',
  tokenUrl: 'https://login.example/token',
  clientId: 'sluice',
  clientSecret: 'secret',
}

/** Returns the faults of a destination with these mappings, without the path of the destination. */
function faultsOf(mappings: unknown, more: object = {}): readonly string[] {
  const crm = {
    id: 'crm',
    sources: ['shop'],
    hooks: [{ url: 'https://crm.example/', login: oauth }],
    mappings,
    ...more,
  }
  const data = { sources: [{ id: 'shop' }], destinations: [crm] }
  const parsed = parseCatalogData(data, { file: 'catalog.yaml', version: '1' })
  if (parsed.ok) return []
  return parsed.faults.map(({ path, problem }) => `${path.replace('destinations[0].', '')} ${problem}`)
}

test('mappings of all kinds may be beside batches and logins', () => {
  const mappings = [
    { condition: 'type == "track"', path: '/users/{{userId}}', method: 'PUT' },
    { condition: 'type == "page"', format: 'form', body: { '@path': '$.properties' } },
    { headers: { 'X-Event': { '@path': '$.event' } }, block: ['context.ip'] },
  ]
  expect(faultsOf(mappings, { batch: {} })).toEqual([])
})

test('a batch has no effect if each mapping makes a request of its own, and the catalog says so', () => {
  const own = [{ path: '/orders' }, { condition: 'type == "page"', method: 'PUT' }, { format: 'form' }]
  expect(faultsOf(own, { batch: {} })).toEqual([
    'batch has no effect, because each mapping makes a request of its own (method, path or format)',
  ])
  expect(faultsOf(own)).toEqual([])
  // A header may be absent.
  expect(faultsOf([...own, { headers: { 'X-Plan': { '@path': '$.traits.plan' } } }], { batch: {} })).toEqual(
    [],
  )
})

test.each(['Authorization', 'authorization', 'AUTHORIZATION'])(
  'the header %s is not a message to decide, with a login and without',
  (name) => {
    const mappings = [{ headers: { [name]: { '@path': '$.properties.token' } } }]
    const fault = `mappings[0].headers.${name} is a header that messages do not decide`
    expect(faultsOf(mappings)).toEqual([fault])
    expect(faultsOf(mappings, { hooks: [{ url: 'https://crm.example/' }] })).toEqual([fault])
  },
)

test.each([
  'Content-Type',
  'content_length',
  'Host',
  'Transfer-Encoding',
  'X-Signature',
  'x-sluice-message-id',
  'webhook-id',
  'Proxy-Authorization',
])('the header %s is not free to set', (name) => {
  expect(faultsOf([{ headers: { [name]: 'x' } }])).toEqual([
    `mappings[0].headers.${name} is a header that is not free to set`,
  ])
})

test.each([
  [[], 'mappings has too few entries'],
  [[{}], 'mappings[0] is empty'],
  [[{ body: { '@liquid': 'x' } }], 'is not a directive that Sluice has'],
  [[{ condition: 'nope == 1' }], 'mappings[0].condition has a fault'],
  [[{ path: 'users' }], 'mappings[0].path is no path'],
  [[{ path: '/../admin' }], 'mappings[0].path has a segment . or ..'],
  [[{ method: 'DELETE' }], 'mappings[0].method'],
])('%j has a fault: %s', (mappings, fault) => {
  expect(faultsOf(mappings).join('\n')).toContain(fault)
})
