import { describe, expect, it } from 'vitest'
import type { Hook } from '../../../src/catalog/catalog.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

const variables = { CATALOG_HOOK: 'https://hooks.example.com/services/T1/s3cr3t', CATALOG_TOKEN: 't0k3n' }

function hookOf(url: string, values: Record<string, string> = variables): Hook | undefined {
  const parsed = parse(`{ id: crm, sources: [], hooks: [{ url: '${url}' }] }`, values)
  return parsed.ok ? parsed.catalog.destinations.get('crm')?.hooks[0] : undefined
}

function parse(destination: string, values: Record<string, string> = variables, sources = '[]') {
  const text = `sources: ${sources}\ndestinations:\n  - ${destination}\n`
  return parseCatalog(text, { file: 'catalog.yaml', variables: values, allowAddresses: [] })
}

describe('a variable in the URL of a hook', () => {
  it('is filled in, as the whole URL or as a part of it', () => {
    expect(hookOf('${CATALOG_HOOK}')).toMatchObject({
      url: 'https://hooks.example.com/services/T1/s3cr3t',
      origin: 'https://hooks.example.com',
      path: '/services/T1/s3cr3t',
    })
    expect(hookOf('https://example.com/x?token=${CATALOG_TOKEN}')?.path).toBe('/x?token=t0k3n')
  })

  it('is a fault if it is not set, at the place of the URL', () => {
    expect(parse("{ id: crm, sources: [], hooks: [{ url: '${CATALOG_GONE}/x' }] }")).toMatchObject({
      ok: false,
      faults: [{ path: 'destinations[0].hooks[0].url', variable: 'CATALOG_GONE', isUrl: true }],
    })
  })

  it.each([
    ['no URL', 's3cr3t', 'is not a full http or https URL'],
    ['a URL with a line break', 'https://example.com/\ns3cr3t', 'has white space or a control character'],
    ['a private address', 'https://10.0.0.1/s3cr3t', 'has an address that is not public'],
  ])('is checked as a URL without being quoted: %s', (_, value, problem) => {
    const parsed = parse("{ id: crm, sources: [], hooks: [{ url: '${CATALOG_HOOK}' }] }", {
      CATALOG_HOOK: value,
    })
    expect(JSON.stringify(parsed)).not.toContain('s3cr3t')
    expect(parsed.ok ? [] : parsed.faults.map((fault) => fault.problem)).toContain(problem)
  })

  it('does not decide the id of the hook, which stays the same when the value changes', () => {
    const ids = ['https://example.com/a', 'https://example.com/b'].map(
      (url) => hookOf('${CATALOG_HOOK}', { CATALOG_HOOK: url })?.id,
    )
    expect(ids[0]).toMatch(/^[0-9a-f]{8}$/)
    expect(ids[1]).toBe(ids[0])
    expect(hookOf('${CATALOG_HOOK}/x')?.id).not.toBe(ids[0])
  })
})

describe('a variable where none is filled in', () => {
  it.each([
    ['the name of a destination', "{ id: crm, name: '${CATALOG_TOKEN}', sources: [], hooks: [] }", 'name'],
    [
      'an event of a filter',
      "{ id: crm, sources: [], filter: { events: ['x ${CATALOG_TOKEN}'] }, hooks: [] }",
      'filter.events[0]',
    ],
    [
      'the id of a hook',
      "{ id: crm, sources: [], hooks: [{ id: '${CATALOG_TOKEN}', url: https://example.com }] }",
      'hooks[0].id',
    ],
    [
      'the name of a header',
      "{ id: crm, sources: [], hooks: [{ url: https://example.com, headers: { '${CATALOG_TOKEN}': a } }] }",
      'hooks[0].headers["$"…]',
    ],
    ['an id', "{ id: '${CATALOG_TOKEN}', sources: [], hooks: [] }", 'id'],
    ['a source', "{ id: crm, sources: ['${CATALOG_TOKEN}'], hooks: [] }", 'sources[0]'],
    [
      'a text deep in a mapping',
      "{ id: crm, sources: [], hooks: [], mappings: [{ body: { a: { b: [{ c: { d: '${CATALOG_TOKEN}' } }] } } }] }",
      'mappings[0].body.a.b[0].c.d',
    ],
    [
      'a name that a mapping gives',
      "{ id: crm, sources: [], hooks: [], mappings: [{ body: { '${CATALOG_TOKEN}': 1 } }] }",
      'mappings[0].body["$"…]',
    ],
    [
      'the id of a client',
      "{ id: crm, sources: [], hooks: [{ url: https://example.com, login: { kind: oauth2, clientId: '${CATALOG_TOKEN}', clientSecret: a, tokenUrl: https://example.com } }] }",
      'hooks[0].login.clientId',
    ],
  ])('is refused: %s', (_, destination, path) => {
    const parsed = parse(destination)
    expect(parsed.ok ? [] : parsed.faults.map((fault) => fault.path)).toContain(`destinations[0].${path}`)
  })

  it('is refused in a write key, which would be a text that everybody can guess', () => {
    const hooks = '[{ url: https://example.com }]'
    const parsed = parse(
      `{ id: crm, sources: [], hooks: ${hooks} }`,
      variables,
      "[{ id: shop, writeKeys: ['${CATALOG_TOKEN}'] }]",
    )
    expect(parsed).toMatchObject({
      ok: false,
      faults: [
        { path: 'sources[0].writeKeys[0]', problem: 'names a variable, and is used as it is written here' },
      ],
    })
  })

  it('is refused only in the exact form of a variable', () => {
    const events = "['${name}', '${', 'costs ${CATALOG_}', '${CATALOG_a}', '$CATALOG_TOKEN']"
    const hooks = '[{ url: https://example.com }]'
    expect(parse(`{ id: crm, sources: [], filter: { events: ${events} }, hooks: ${hooks} }`).ok).toBe(true)
  })

  it('is a fault in data that contains itself too', () => {
    expect(parse("&a { id: crm, sources: [*a, '${CATALOG_TOKEN}'], hooks: [] }")).toMatchObject({
      ok: false,
      faults: [{ problem: 'has an alias inside of the value that it names' }],
    })
  })
})
