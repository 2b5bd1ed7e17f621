import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import type { Catalog, Destination } from '../../../src/catalog/catalog.ts'
import { formatFault } from '../../../src/catalog/fault.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import type { Variables } from '../../../src/catalog/variables.ts'

function parsed(text: string, variables: Variables = {}): Catalog {
  const result = parseCatalog(text, { file: 'catalog.yaml', variables })
  if (!result.ok) throw new Error(result.faults.map(formatFault).join('\n'))
  return result.catalog
}

function faults(text: string, variables: Variables = {}): readonly string[] {
  const result = parseCatalog(text, { file: 'catalog.yaml', variables })
  return result.ok ? [] : result.faults.map(formatFault)
}

/** Returns a catalog with one source `shop` and one destination `crm` that has these lines. */
function withDestination(...lines: string[]): string {
  return [
    'sources: [{ id: shop }]',
    'destinations:',
    '  - id: crm',
    '    sources: [shop]',
    '    hooks: [{ url: https://example.com/hook }]',
    ...lines.map((line) => `    ${line}`),
  ].join('\n')
}

function destination(text: string, variables: Variables = {}): Destination {
  const found = parsed(text, variables).destinations.get('crm')
  if (found === undefined) throw new Error('no destination')
  return found
}

/** Returns a catalog with one source `shop` and one destination `crm` that has these hooks. */
function withHooks(hooks: unknown): string {
  return stringify({ sources: [{ id: 'shop' }], destinations: [{ id: 'crm', sources: ['shop'], hooks }] })
}

function hookIds(...urls: string[]): readonly string[] {
  return destination(withHooks(urls.map((url) => ({ url })))).hooks.map(({ id }) => id)
}

/** Returns a line with a destination that has five faults. */
function brokenDestination(index: number): string {
  return `  - { id: "d ${index}", states: on, sources: [nope], hooks: [{ url: x, headers: { Host: a } }] }\n`
}

describe('parseCatalog', () => {
  it.each(['on', 'off', 'paused', '"on"', "'off'"])('reads state: %s as text', (state) => {
    expect(destination(withDestination(`state: ${state}`)).state).toBe(state.replaceAll(/["']/g, ''))
  })

  it('reads on as text even when the file says YAML 1.1', () => {
    expect(destination(`%YAML 1.1\n---\n${withDestination('state: off')}`).state).toBe('off')
  })

  it('reads JSON, and headers that are shared by an alias', () => {
    expect(parsed('{"sources": [], "destinations": []}').destinations.size).toBe(0)
    const text = withDestination().replace(
      'hooks: [{ url: https://example.com/hook }]',
      'hooks: [{ url: http://a, headers: &h { X-A: b } }, { url: http://b, headers: *h }]',
    )
    expect(destination(text).hooks.map(({ headers }) => headers)).toEqual([[['X-A', 'b']], [['X-A', 'b']]])
  })

  it('gives a hook the same id wherever it stands', () => {
    expect(hookIds('http://a/', 'http://b/')).toEqual(hookIds('http://b', 'http://a').toReversed())
  })

  it('takes the same URL twice when each has an id', () => {
    expect(
      destination(
        withHooks([
          { url: 'http://a', id: 'x' },
          { url: 'http://a', id: 'y' },
        ]),
      ).hooks,
    ).toHaveLength(2)
  })

  it('fills variables into secrets and headers', () => {
    const text = withDestination('sharedSecret: ${CATALOG_SECRET}').replace(
      'https://example.com/hook }',
      () => 'https://example.com/hook, headers: { X-A: "Bearer ${CATALOG_A}, $${CATALOG_A}, $5" } }',
    )
    const { sharedSecret, hooks } = destination(text, { CATALOG_SECRET: 's3cret', CATALOG_A: 'a$&b' })
    expect(sharedSecret).toBe('s3cret')
    expect(hooks[0]?.headers).toEqual([['X-A', 'Bearer a$&b, ${CATALOG_A}, $5']])
  })

  it.each([
    [
      'an unknown key at the top',
      'sources: []\ndestinations: []\nsurces: []',
      ':3:1: surces: is not a known key; did you mean sources?; the keys here are sources, destinations',
    ],
    ['a missing key at the top', 'sources: []', ':1:1: destinations: is missing; add destinations: []'],
    [
      'an empty file',
      '# nothing\n',
      ':1:1: the catalog is empty; write sources: [] and destinations: [] at least',
    ],
    [
      'a list for a catalog',
      '- a',
      ':1:1: must be a block of keys, and is a list; write its keys below it, one a line: "key: value"',
    ],
    [
      'a block without entries',
      'sources:\ndestinations: []',
      ':1:9: sources: must be a list, and is empty; write its entries below it, each after "- ", or [] for none',
    ],
    [
      'a syntax error',
      'sources: "a',
      ':1:12: lacks a character before here; close the quote or bracket, or add the missing : or ,',
    ],
    [
      'a key that is written twice',
      'sources: []\nsources: []\ndestinations: []',
      ':2:1: is a key that was written before; keep one of the two',
    ],
    [
      'a second document',
      'sources: []\ndestinations: []\n---\na: b',
      ':3:1: begins a second document; remove the --- and keep one document',
    ],
    [
      'a tag',
      'sources: !!set {}\ndestinations: []',
      ':1:10: has a tag or a directive, which mean nothing here; remove it',
    ],
    [
      'an alias to nothing',
      'sources: *a\ndestinations: []',
      ':1:1: has an alias without an anchor before it, or too many aliases; write the values out',
    ],
    ['endless nesting', '['.repeat(5_000), 'is nested too deep; write the values out'],
    [
      'an unknown kind',
      'sources: [{ id: a, kind: event }]\ndestinations: []',
      ':1:26: a: sources[0].kind: is not a value that is known here; write events or audiences',
    ],
    [
      'a switch that is text',
      'sources: [{ id: a, enabled: yes }]\ndestinations: []',
      ':1:29: a: sources[0].enabled: must be true or false, and is text; write true or false, without quotes',
    ],
    [
      'an id that is a number',
      'sources: [{ id: 7 }]\ndestinations: []',
      ':1:17: sources[0].id: must be text, and is a whole number; put the value in quotes',
    ],
    [
      'an id with a space',
      'sources: [{ id: a b }]\ndestinations: []',
      ':1:17: sources[0].id: is not written as it has to be; write it so: the id, which records have in the header source-id',
    ],
    [
      'two sources with one id',
      'sources: [{ id: a }, { id: a }]\ndestinations: []',
      ':1:28: a: sources[1].id: is the id of another source; choose another, or remove one of the two',
    ],
    [
      'a write key of two sources',
      'sources: [{ id: a, writeKeys: [k] }, { id: b, writeKeys: [k] }]\ndestinations: []',
      ':1:59: b: sources[1].writeKeys[0]: is a write key that is listed before; choose another',
    ],
    [
      'two destinations with one id',
      `${withDestination()}\n  - { id: crm, sources: [], hooks: [{ url: http://a }] }`,
      ':6:11: crm: destinations[1].id: is the id of another destination',
    ],
    [
      'an unknown source',
      withDestination().replace('[shop]', '[shop, nope]'),
      ':4:21: crm: destinations[0].sources[1]: names the source "nope", which is not in the catalog; add it to sources, or name one of shop',
    ],
    [
      'a source named twice',
      withDestination().replace('[shop]', '[shop, shop]'),
      ':4:14: crm: destinations[0].sources: names something twice; name each once',
    ],
    [
      'an unknown state',
      withDestination('state: true'),
      ':6:12: crm: destinations[0].state: is not a value that is known here; write on, off or paused',
    ],
    [
      'an unknown strategy',
      withDestination('strategy: any'),
      ':6:15: crm: destinations[0].strategy: is not a value that is known here; write all or failover',
    ],
    [
      'a limit that is too small',
      withDestination('maxInFlight: 0'),
      ':6:18: crm: destinations[0].maxInFlight: is too small; write 1 or more',
    ],
    [
      'a limit that is too large',
      withDestination('maxInFlight: 1025'),
      ':6:18: crm: destinations[0].maxInFlight: is too large; write 1024 or less',
    ],
    [
      'a limit that is no number',
      withDestination('maxInFlight: "8"'),
      ':6:18: crm: destinations[0].maxInFlight: must be a whole number, and is text; write digits only, without quotes',
    ],
    [
      'an empty secret',
      withDestination('sharedSecret: ""'),
      ':6:19: crm: destinations[0].sharedSecret: is empty; write a value, or remove the key',
    ],
    [
      'a next secret without a secret',
      withDestination('nextSharedSecret: a', 'signing: { standardWebhooks: false }'),
      ':6:23: crm: destinations[0].nextSharedSecret: is set without a sharedSecret; write it as sharedSecret',
    ],
    [
      'a next secret that signs nothing',
      withDestination('sharedSecret: a', 'nextSharedSecret: b'),
      ':7:23: crm: destinations[0].nextSharedSecret: has no use: X-Signature is made with sharedSecret alone; add signing: { standardWebhooks: true }, which signs with both, or sharedSecretEndsAt, or remove it',
    ],
    [
      'a next secret that is the same',
      withDestination('sharedSecret: a', 'nextSharedSecret: a', 'signing: { standardWebhooks: true }'),
      ':7:23: crm: destinations[0].nextSharedSecret: is the same as sharedSecret; write the new one, or remove it',
    ],
    [
      'Standard Webhooks without a secret',
      withDestination('signing: { standardWebhooks: true }'),
      ':6:34: crm: destinations[0].signing.standardWebhooks: signs with a shared secret, and there is none; add sharedSecret: ${CATALOG_NAME}',
    ],
    [
      'a secret for Standard Webhooks that is no base64',
      withDestination('sharedSecret: whsec_*', 'signing: { standardWebhooks: true }'),
      ':6:19: crm: destinations[0].sharedSecret: begins with whsec_, and what follows is not base64; write whsec_ and a key as `openssl rand -base64 32` gives it, or a secret that begins otherwise',
    ],
    [
      'a next secret that is no base64',
      withDestination('sharedSecret: a', 'nextSharedSecret: whsec_', 'signing: { standardWebhooks: true }'),
      ':7:23: crm: destinations[0].nextSharedSecret: begins with whsec_, and what follows is not base64',
    ],
    [
      'another kind of signing',
      withDestination('sharedSecret: a', 'signing: { standard: true }'),
      ':7:16: crm: destinations[0].signing.standard: is not a known key; remove it; the keys here are standardWebhooks',
    ],
    [
      'an empty name',
      withDestination('name: ""'),
      ':6:11: crm: destinations[0].name: is empty; write a value, or remove the key',
    ],
    [
      'a name that is too long',
      withDestination(`name: ${'x'.repeat(201)}`),
      ':6:11: crm: destinations[0].name: is too long; keep at most 200 characters',
    ],
    ['no hooks', withHooks([]), 'destinations[0].hooks: has too few entries; write at least 1'],
    [
      'six hooks',
      withHooks([1, 2, 3, 4, 5, 6].map((number) => ({ url: `http://a${number}` }))),
      'destinations[0].hooks: has too many entries; keep at most 5',
    ],
    [
      'a hook without a URL',
      withHooks([{}]),
      'destinations[0].hooks[0].url: is missing; add url: https://example.com/hook',
    ],
    [
      'a bad URL',
      withHooks([{ url: 'ftp://a' }]),
      'destinations[0].hooks[0].url: is not a full http or https URL; write a full URL such as https://example.com/hook',
    ],
    [
      'a URL twice',
      withHooks([{ url: 'http://a' }, { url: 'http://A/' }]),
      'destinations[0].hooks[1].url: is the URL of another hook; remove one, or give each an id',
    ],
    [
      'a hook id twice',
      withHooks([
        { url: 'http://a', id: 'x' },
        { url: 'http://b', id: 'x' },
      ]),
      'destinations[0].hooks[1].id: is the id of another hook of this destination; choose another',
    ],
    [
      'a header that is not free',
      withHooks([{ url: 'http://a', headers: { HOST: 'b' } }]),
      'destinations[0].hooks[0].headers.HOST: is a header that is not free to set; remove it, or choose another name',
    ],
    [
      'a header name with a space',
      withHooks([{ url: 'http://a', headers: { 'X Y': 'b' } }]),
      'destinations[0].hooks[0].headers["X"…]: is not a header name; write letters, digits and - only, such as X-Team',
    ],
    [
      'a header in two spellings',
      withHooks([{ url: 'http://a', headers: { 'X-Y': 'b', 'x-y': 'c' } }]),
      'destinations[0].hooks[0].headers.x-y: is a header that is set before (case makes no difference); keep one',
    ],
    [
      'a header that is a number',
      withHooks([{ url: 'http://a', headers: { 'X-Y': 1 } }]),
      'destinations[0].hooks[0].headers.X-Y: must be text, and is a whole number; put the value in quotes',
    ],
    [
      'a line break in a header',
      withHooks([{ url: 'http://a', headers: { 'X-Y': 'a\nb' } }]),
      'destinations[0].hooks[0].headers.X-Y: has a line break; write it in one line',
    ],
    [
      'too many bytes of headers',
      withHooks([{ url: 'http://a', headers: { 'X-Y': 'a'.repeat(9000) } }]),
      'destinations[0].hooks[0].headers: has 9007 bytes of headers; keep at most 8192',
    ],
    [
      'a variable that is not set',
      withDestination('sharedSecret: ${CATALOG_X}'),
      ':6:19: crm: destinations[0].sharedSecret: names the environment variable CATALOG_X, which is not set; set CATALOG_X',
    ],
    [
      'a variable that may not be read',
      withDestination('sharedSecret: ${HOME}'),
      ':6:19: crm: destinations[0].sharedSecret: has ${ without the name of a variable that may be read here',
    ],
  ])('refuses %s, and says where and what to write', (_, text, fault) => {
    const found = faults(text)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(fault)
    expect(found[0]).toMatch(/^catalog\.yaml:\d+:\d+: /)
  })

  it('refuses 51 headers once', () => {
    const headers = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`X-${index}`, 'a']))
    expect(faults(withHooks([{ url: 'http://a', headers }]))).toEqual([
      expect.stringContaining('hooks[0].headers: has too many entries; keep at most 50'),
    ])
  })

  it('takes any secret that begins with whsec_ where it is no key of Standard Webhooks', () => {
    expect(destination(withDestination('sharedSecret: whsec_*')).sharedSecret).toBe('whsec_*')
  })

  it.each([
    ['an empty variable', '', 'names the environment variable CATALOG_X, which is not set'],
    ['a variable with the line break of a file', 's3cret\n', 'has a control character or line break'],
    ['a variable with a space at the end', 's3cret ', 'begins or ends with white space'],
  ])('refuses a secret from %s', (_, value, problem) => {
    const found = faults(withDestination('sharedSecret: ${CATALOG_X}'), { CATALOG_X: value })
    expect(found).toEqual([expect.stringContaining(problem)])
  })

  it('names every fault at once, in the order of the text', () => {
    const text = `sources: []\ndestinations:\n${[1, 2, 3, 4, 5].map(brokenDestination).join('')}`
    const found = faults(text)
    expect(found).toHaveLength(25)
    expect(found.map((fault) => Number(fault.split(':')[1]))).toEqual(
      [3, 4, 5, 6, 7].flatMap((line) => Array<number>(5).fill(line)),
    )
  })

  it('quotes no secret, header value, URL or write key in a fault', () => {
    const secret = 'hunter2'
    const texts = [
      `sources: [{ id: a, writeKeys: ["${secret} ", "${secret} "] }]\ndestinations: []`,
      withDestination(`sharedSecret: "${secret}\\n"`),
      withDestination(`sharedSecret: ["${secret}"]`),
      withDestination(`sharedSecret: "${secret}" x`),
      withDestination(`sharedSecret: *${secret}`),
      withDestination(`sharedSecret: !${secret} a`),
      withDestination(`sharedSecret: "${secret}`),
      withDestination(`nextSharedSecret: ${secret}`),
      withDestination(`sharedSecret: ${secret}`, `nextSharedSecret: ${secret}`),
      withDestination(`sharedSecret: whsec_${secret}*`, 'signing: { standardWebhooks: true }'),
      withDestination(`sharedSecret: @${secret}`),
      withHooks([{ url: `https://me:${secret}@example.com/#${secret}` }]),
      withHooks([{ url: `https://example.com:25/?token=${secret}` }]),
      withHooks([{ url: `https://example.com./?token=${secret}` }]),
      withHooks([`https://example.com/?token=${secret}`]),
      withHooks([{ url: 'http://a', headers: { 'X-A': `${secret}\n`, Host: secret } }]),
      // Without a space after the colon, YAML sees a text and not a key with a value.
      withHooks([{ url: 'http://a', headers: `Authorization:${secret}` }]),
      withDestination().replace('}]', `, headers: { Authorization:Bearer ${secret} } }]`),
    ]
    for (const text of texts) {
      expect(faults(text)).not.toEqual([])
      expect(faults(text).join('\n')).not.toContain(secret)
    }
    const fromVariable = faults(withDestination('sharedSecret: ${CATALOG_X}'), { CATALOG_X: `${secret}\n` })
    expect(fromVariable.join('\n')).not.toContain(secret)
  })
})

describe('parseCatalog, whatever it is given', () => {
  const name = fc.constantFrom(
    'sources',
    'destinations',
    'id',
    'hooks',
    'url',
    'headers',
    'state',
    'sharedSecret',
    'X-A',
    '<<',
    '__proto__',
    'a b',
  )
  const scalar = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constantFrom('shop', 'http://a', '${CATALOG_X}', '${', 'on'),
  )
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', maxDepth: 5 },
      scalar,
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(name, tie('tree'), { maxKeys: 5 }),
    ),
  }))
  const catalogLike = fc.record({
    sources: tree,
    destinations: fc.array(
      fc.record(
        {
          id: scalar,
          sources: tree,
          hooks: fc.array(fc.record({ url: scalar, headers: tree }), { maxLength: 3 }),
        },
        { requiredKeys: [] },
      ),
    ),
  })
  const snippets = fc
    .array(
      fc.constantFrom(
        'sources:',
        'destinations:',
        '\n',
        '  ',
        '- ',
        'id: ',
        '&a ',
        '*a',
        '[',
        ']',
        '{',
        '}',
        '"',
        "'",
        '!!x ',
        '---',
        '%YAML 1.1',
        '? ',
        ': ',
        '|',
        '\t',
        '#',
        'é',
      ),
      { maxLength: 30 },
    )
    .map((parts) => parts.join(''))
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    snippets,
    tree.map((value) => stringify(value)),
    catalogLike.map((value) => stringify(value)),
    catalogLike.map((value) => JSON.stringify(value)),
  )

  it('never throws, and gives either a catalog or faults with a place in the text', () => {
    fc.assert(
      fc.property(text, (given) => {
        const result = parseCatalog(given, { file: 'catalog.yaml' })
        if (result.ok) return
        expect(result.faults.length).toBeGreaterThan(0)
        const lines = given.split('\n').length
        const odd = result.faults.filter(
          ({ line = 0, column = 0, problem, advice }) =>
            line < 1 || line > lines || column < 1 || problem === '' || advice === '',
        )
        expect(odd).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })
})
