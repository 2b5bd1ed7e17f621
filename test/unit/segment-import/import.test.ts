import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseCatalogData } from '../../../src/catalog/parse.ts'
import { importWorkspace } from '../../../src/segment-import/import.ts'
import { noteText } from '../../../src/segment-import/note.ts'
import { workspaceOf } from '../../../src/segment-import/workspace.ts'

/** Answers of the Public API about a small shop: one a line. */
const answers = readFileSync(join(import.meta.dirname, 'workspace.ndjson'), 'utf8')
  .trim()
  .split('\n')
  .map((line): unknown => JSON.parse(line))

const shop = {
  sources: [{ id: 's1', slug: 'shop', name: 'shop', enabled: true, writeKeys: ['wk'], metadata: {} }],
  filters: [],
}

/** Imports one mapping of Webhooks (Actions). */
function mapping(settings: object, trigger = 'type = "track"', others: object = {}) {
  const subscription = { id: 'm1', name: 'Orders', destinationId: 'd1', enabled: true, trigger, settings }
  const destination = {
    id: 'd1',
    name: 'crm',
    enabled: true,
    sourceId: 's1',
    metadata: { slug: 'actions-webhook' },
    settings: {},
    ...others,
  }
  return imported({ ...shop, destinations: [destination], subscriptions: [subscription] })
}

/** Imports a destination of the type Webhooks. */
function classic(settings: object, filters: readonly object[] = []) {
  const metadata = { slug: 'webhooks' }
  const destination = { id: 'd1', name: 'crm', enabled: true, sourceId: 's1', metadata, settings }
  return imported({ ...shop, destinations: [destination], filters })
}

function imported(answer: object) {
  const { catalog, notes, variables } = importWorkspace(workspaceOf([{ data: answer }]))
  return { destination: catalog.destinations[0], notes: notes.map(noteText), variables }
}

function filter(action: object, condition = 'all') {
  return { id: 'f1', destinationId: 'd1', title: 'F', enabled: true, if: condition, actions: [action] }
}

const oneHook = { hooks: [{ hook: 'https://crm.example/hook', headers: [{ key: '', value: '' }] }] }

test('a workspace becomes a catalog without faults, in which all destinations are off', () => {
  const { catalog, variables, notes } = importWorkspace(workspaceOf(answers))
  const parsed = parseCatalogData(catalog, {
    file: 'import',
    version: '1',
    variables: Object.fromEntries(variables),
  })
  expect(parsed).toMatchObject({ ok: true })
  expect(JSON.parse(readFileSync(join(import.meta.dirname, 'catalog.json'), 'utf8'))).toEqual({
    ...catalog,
    variables: Object.fromEntries(variables),
    notes: notes.map(noteText),
  })
})

test('no secret of a workspace is in the catalog or in a note', () => {
  const { catalog, variables, notes } = importWorkspace(workspaceOf(answers))
  const shown = JSON.stringify([catalog, notes])
  expect([...variables.values()].length).toBeGreaterThan(2)
  for (const secret of variables.values()) expect(shown).not.toContain(secret)
})

test('a trigger and a body in mapping-kit are taken over, and the default body is the message', () => {
  const body = { total: { '@path': '$.properties.total' } }
  expect(mapping({ url: 'https://crm.example/h', data: body }).destination).toMatchObject({
    mappings: [{ condition: 'type == "track"', body }],
    hooks: [{ url: 'https://crm.example/h' }],
  })
  const whole = mapping({ url: 'https://crm.example/h', method: 'POST', data: { '@path': '$.' } }, '')
  expect(whole.destination).not.toHaveProperty('mappings')
})

test('what a URL takes from the message becomes the path of the mapping', () => {
  const url = { '@template': 'https://crm.example/v2/people/{{userId}}?list={{properties.list}}' }
  expect(mapping({ url, method: 'PUT' }).destination).toMatchObject({
    mappings: [{ method: 'PUT', path: '/{{userId}}?list={{properties.list}}' }],
    hooks: [{ url: 'https://crm.example/v2/people' }],
  })
  const query = { '@template': 'https://crm.example/hook?user={{userId}}' }
  expect(mapping({ url: query }).destination).toMatchObject({
    mappings: [{ path: '/hook?user={{userId}}' }],
    hooks: [{ url: 'https://crm.example' }],
  })
})

test('fixed headers are those of the hook, made ones those of the mapping, and secret ones variables', () => {
  const headers = {
    'Content-Type': 'application/x-www-form-urlencoded',
    'X-Team': 'crm',
    'X-Api-Key': 'k-4711-abc',
    'X-User': { '@path': '$.userId' },
  }
  const { destination, variables } = mapping({ url: 'https://crm.example/h', headers })
  expect(destination).toMatchObject({
    mappings: [{ format: 'form', headers: { 'X-User': { '@path': '$.userId' } } }],
    hooks: [{ headers: { 'X-Team': 'crm', 'X-Api-Key': '${CATALOG_CRM_X_API_KEY}' } }],
  })
  expect([...variables]).toEqual([['CATALOG_CRM_X_API_KEY', 'k-4711-abc']])
})

test.each([
  [
    'another host for each message',
    { url: { '@path': '$.properties.url' } },
    'write a destination for each host',
  ],
  ['a host of the message', { url: { '@template': 'https://{{a}}/h' } }, 'write a destination for each host'],
  ['a method without a body', { url: 'https://a.example', method: 'GET' }, 'use POST, PUT or PATCH'],
  ['headers of the message', { url: 'https://a.example', headers: { '@path': '$.h' } }, 'name each header'],
  [
    'another type of body',
    { url: 'https://a.example', headers: { 'content-type': 'text/xml' } },
    'send JSON',
  ],
  ['@liquid', { url: 'https://a.example', data: { x: { '@liquid': '{{ a }}' } } }, 'use one of @path'],
  ['a port of mail', { url: 'https://a.example:25/' }, 'listen on another port'],
])('a mapping with %s is left out by name, with the way', (_what, settings, way) => {
  const { destination, notes } = mapping(settings)
  expect(destination).toBeUndefined()
  expect(notes).toEqual([expect.stringMatching(/^left out: mapping "Orders" of destination "crm": .+; /)])
  expect(notes[0]).toContain(way)
})

test("a trigger that can't be translated leaves its mapping out, and is told", () => {
  const { destination, notes } = mapping({ url: 'https://a.example' }, 'typeof(event) = "string"')
  expect(destination).toBeUndefined()
  expect(notes.join()).toContain('its trigger is "typeof(event) = \\"string\\"", which can\'t be translated')
})

test('a mapping of Reverse ETL is left out', () => {
  const subscription = { id: 'm', destinationId: 'd1', modelId: 'x', trigger: '', settings: {} }
  const destination = { id: 'd1', name: 'crm', sourceId: 's1', metadata: { slug: 'actions-webhook' } }
  const { notes } = imported({ ...shop, destinations: [destination], subscriptions: [subscription] })
  expect(notes.join()).toContain('rows of a Reverse ETL model')
})

test('each mapping of a destination becomes a destination, because each makes a request of its own', () => {
  const settings = { url: 'https://crm.example/h' }
  const one = { id: 'm1', name: 'Orders', destinationId: 'd1', trigger: 'type = "track"', settings }
  const other = { id: 'm2', name: 'People', destinationId: 'd1', trigger: 'type = "identify"', settings }
  const destination = { id: 'd1', name: 'CRM', sourceId: 's1', metadata: { slug: 'actions-webhook' } }
  const answer = { ...shop, destinations: [destination], subscriptions: [one, other] }
  const { catalog } = importWorkspace(workspaceOf([answer]))
  expect(catalog.destinations.map(({ id }) => id)).toEqual(['crm-orders', 'crm-people'])
})

test('batches are taken over, unless the requests of the mapping differ from each other', () => {
  const batching = { url: 'https://a.example', enable_batching: true, batch_size: 5_000 }
  expect(mapping(batching).destination).toMatchObject({ batch: { maxMessages: 1_000 } })
  const { destination, notes } = mapping({ ...batching, method: 'PUT' })
  expect(destination).not.toHaveProperty('batch')
  expect(notes.join()).toMatch(/^differs: .+ is sent alone/)
})

test('a login in a URL becomes a login of the hook', () => {
  const { destination, variables } = classic({ hooks: [{ hook: 'https://ann:s%20cret@crm.example/h?a=1' }] })
  expect(destination).toMatchObject({
    hooks: [
      {
        url: 'https://crm.example/h?a=1',
        login: { kind: 'basic', username: 'ann', password: '${CATALOG_CRM_PASSWORD}' },
      },
    ],
  })
  expect(variables.get('CATALOG_CRM_PASSWORD')).toBe('s cret')
})

test('a URL that is listed twice is one hook, and a secret of stars has to be set', () => {
  const { destination, notes, variables } = classic({
    ...oneHook,
    globalHook: 'https://crm.example/hook',
    sharedSecret: '••••••',
  })
  expect(destination).toMatchObject({ hooks: [{ url: 'https://crm.example/hook' }] })
  expect(notes).toEqual([expect.stringContaining('stars instead of CATALOG_CRM_SECRET')])
  expect(variables.get('CATALOG_CRM_SECRET')).toBeUndefined()
})

test('filters of a destination become its filter and the fields that its mapping sees', () => {
  const drop = filter({ type: 'DROP' }, 'event = "Test" or !(properties.total > 1)')
  expect(classic(oneHook, [drop]).destination).toMatchObject({
    filter: { condition: expect.stringContaining('properties.total > 1') },
  })
  const sample = filter({ type: 'SAMPLE', percent: 0.25, path: 'userId' })
  expect(classic(oneHook, [sample])).toMatchObject({
    destination: { filter: { sample: { percent: 25 } } },
    notes: [],
  })
  const block = filter({
    type: 'DROP_PROPERTIES',
    fields: { context: { fields: ['ip'] }, 'properties.card': ['no'] },
  })
  expect(classic(oneHook, [block]).destination).toMatchObject({
    mappings: [{ block: ['context.ip', 'properties.card.no'] }],
  })
  const allow = filter({ type: 'ALLOW_PROPERTIES', fields: { properties: { fields: ['total'] } } })
  const { mappings }: { mappings: [{ allow: string[] }] } = Object(classic(oneHook, [allow]).destination)
  expect(mappings[0].allow).toContain('traits')
  expect(mappings[0].allow).toContain('properties.total')
  expect(mappings[0].allow).not.toContain('properties')
})

test.each([
  ['drops all', filter({ type: 'DROP' })],
  ['drops fields of some messages', filter({ type: 'DROP_PROPERTIES', fields: {} }, 'type = "track"')],
  ['samples some messages', filter({ type: 'SAMPLE', percent: 0.1 }, 'type = "track"')],
  ['allows fields deep down', filter({ type: 'ALLOW_PROPERTIES', fields: { 'properties.a': ['b'] } })],
  ["can't be translated", filter({ type: 'DROP' }, 'typeof(event) = 1')],
])('a filter that %s leaves its destination out, because it would get too much without it', (_what, one) => {
  const { destination, notes } = classic(oneHook, [one])
  expect(destination).toBeUndefined()
  expect(notes).toEqual([expect.stringMatching(/^left out: destination "crm": its filter "F"/)])
})

test('a filter that is switched off counts for nothing', () => {
  const { destination, notes } = classic(oneHook, [{ ...filter({ type: 'DROP' }), enabled: false }])
  expect(destination).toMatchObject({ id: 'crm' })
  expect(notes).toEqual([])
})

test('a file that lacks a page, mappings or filters is told so', () => {
  const destination = { id: 'd1', name: 'crm', sourceId: 's1', metadata: { slug: 'actions-webhook' } }
  const { notes } = imported({
    sources: shop.sources,
    destinations: [destination],
    pagination: { current: 'MA==', next: 'Mg==' },
  })
  expect(notes.join('\n')).toContain('the sources: the file has only some of them')
  expect(notes.join('\n')).toContain('add the answers of GET /destination/ID/filters')
  expect(notes.join('\n')).toContain('add the answer of GET /destinations/d1/subscriptions')
})
