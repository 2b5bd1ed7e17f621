import { expect, test } from 'vitest'
import { decisionFaults } from '../../../scripts/decisions.ts'
import { docFaults, type DocFacts, readerFaults, spokenFaults } from '../../../scripts/docs-faults.ts'
import { anchorsOf } from '../../../scripts/markdown-page.ts'
import { diagramFault } from '../../../scripts/mermaid.ts'

const pages = new Map([
  ['docs/kafka.md', '# Kafka\n\n## Who may do what?\n\n## Rights\n\n## Rights\n'],
  ['src/kafka/group/claim.ts', ''],
  ['docs', ''],
])

const facts: DocFacts = {
  scripts: new Set(['check', 'bench', 'check:docs']),
  benchmarks: new Set(['worker']),
  program: {
    name: 'sluice',
    flags: ['--version'],
    commands: [
      { name: 'worker', flags: ['--processes'], commands: [] },
      {
        name: 'topics',
        flags: [],
        commands: [{ name: 'apply', flags: ['--topics-check'], commands: [] }],
      },
    ],
  },
  series: new Set(['sluice_up', 'sluice_wait_seconds', 'sluice_wait_seconds_bucket', 'sluice:rate:5m']),
  variables: new Set(['SLUICE_HTTP_PORT']),
  settings: new Set(['http.port', 'topics.check']),
  refusalOf: (name, value) =>
    ['http.port', 'SLUICE_HTTP_PORT', '--http-port'].includes(name) && !/^\d+$/.test(value)
      ? 'a number'
      : undefined,
  routes: [
    { method: 'GET', path: '/v1/replays/{replay}' },
    { method: 'POST', path: '/v1/track' },
  ],
  exists: (path) => pages.has(path),
  read: (path) => pages.get(path) ?? '',
}

function faultsOf(text: string, file = 'docs/page.md'): string[] {
  return docFaults({ file, text }, facts)
}

const block = (text: string, language = ''): string => `\`\`\`${language}\n${text}\n\`\`\`\n`

test('a page that names only what exists has no fault', () => {
  expect(
    faultsOf(
      [
        '[rights](kafka.md#who-may-do-what), [again](./kafka.md#rights-1), [here](#top), [out](https://example.com/x)',
        '# Top',
        '`npm run check`, `npm run bench -- worker`, `npx sluice worker --processes 4`, `http.port`, `catalog.yaml`',
        '`sluice_up`, `sluice_wait_…`, sluice:rate:5m, `SLUICE_HTTP_PORT`, `src/kafka/group/claim.ts`, `kafka/group/claim.ts`',
        block('KAFKA_BROKERS=x npx sluice topics apply \\\n  --topics-check warn\nsluice --version'),
        'Outside of a checkout: `npx @OWNER/sluice`.',
        block('helm install sluice deploy --set a=b'),
      ].join('\n'),
    ).filter((fault) => !fault.includes('deploy')),
  ).toEqual([])
})

test.each([
  ['a file', '[x](gone.md)', "docs/page.md:1 links to gone.md, which doesn't exist"],
  [
    'an anchor',
    '[x](kafka.md#gone)',
    'docs/page.md:1 links to kafka.md#gone, but docs/kafka.md has no heading of that name',
  ],
  ['an anchor of its own', '# A\n[x](#b)', undefined],
  [
    'a script of npm',
    'Run `npm run gone`.',
    "docs/page.md:1 names `npm run gone`, which package.json doesn't have",
  ],
  [
    'a benchmark',
    '`npm run bench -- gone`',
    "docs/page.md:1 names the benchmark gone, which bench doesn't have",
  ],
  ['a command', '`sluice gone`', 'docs/page.md:1 names `sluice gone`, but there is no such command'],
  [
    'a command below another',
    '`sluice topics gone`',
    'docs/page.md:1 names `sluice topics gone`, but there is no such command',
  ],
  [
    'a flag',
    block('x\nsluice worker --gone 4'),
    "docs/page.md:3 names --gone, which `sluice worker` doesn't take",
  ],
  [
    'a flag in a pod',
    block('kubectl -n "$NAMESPACE" exec "$POD" -- sluice worker --gone'),
    "docs/page.md:2 names --gone, which `sluice worker` doesn't take",
  ],
  [
    'a flag on a line of its own',
    block('sluice topics apply \\\n  --gone'),
    "docs/page.md:2 names --gone, which `sluice apply` doesn't take",
  ],
  [
    'a metric',
    'See sluice_gone_total.',
    'docs/page.md:1 names the metric sluice_gone_total, which nobody tells',
  ],
  ['metrics by their beginning', '`sluice_gone_*`', undefined],
  ['a variable', '`SLUICE_GONE=1`', 'docs/page.md:1 names the variable SLUICE_GONE, which nothing reads'],
  ['a setting', 'Set `http.gone`.', "docs/page.md:1 names the setting http.gone, which doesn't exist"],
  [
    'a value of a setting',
    '`http.port=ten`',
    'docs/page.md:1 names http.port=ten, but http.port takes a number',
  ],
  [
    'a value of a variable',
    block("SLUICE_HTTP_PORT='ten' sluice worker"),
    "docs/page.md:2 names SLUICE_HTTP_PORT='ten', but SLUICE_HTTP_PORT takes a number",
  ],
  [
    'a value of a flag',
    '`--http-port ten`',
    'docs/page.md:1 names --http-port ten, but --http-port takes a number',
  ],
  ['a route', '`GET /v1/gone`', 'docs/page.md:1 names GET /v1/gone, which no API has'],
  [
    'a method of a route',
    '`POST /v1/replays/r1`',
    'docs/page.md:1 names POST /v1/replays/r1, which no API has',
  ],
  ['a path of an API', '`/v1/gone`', 'docs/page.md:1 names the path /v1/gone, which no API has'],
  [
    'a command after help',
    '`sluice help gone`',
    'docs/page.md:1 names `sluice help gone`, but there is no such command',
  ],
  [
    'a package of ours by the name that npx takes',
    'Run `npx\nsluice worker`.',
    'docs/page.md:1 says npx sluice, which runs a package of somebody else outside of a checkout: write sluice',
  ],
  ['a path', '`src/gone.ts`', "docs/page.md:1 names src/gone.ts, which doesn't exist"],
  ['a path of the drill', '`drill/gone.ts`', "docs/page.md:1 names drill/gone.ts, which doesn't exist"],
  ['a path within src', '`kafka/gone.ts`', "docs/page.md:1 names kafka/gone.ts, which doesn't exist"],
])('%s that does not exist is a fault', (_, text, fault) => {
  const faults = faultsOf(text)
  expect(faults).toHaveLength(1)
  if (fault !== undefined) expect(faults).toEqual([fault])
})

test('values and routes that exist have no fault, and neither have those that stand for others', () => {
  const row =
    '`http.port=80`, `http.port=PORT`, `SLUICE_HTTP_PORT=$PORT`, `GET /v1/replays/r1`, `/v1/track`, `/v1/`'
  expect(faultsOf(row)).toEqual([])
})

test('what a program or a template tells people to run is checked too', () => {
  const text = [
    "say('run `sluice topics gone`')",
    'say("then: sluice worker --gone")',
    'say(`try: ${sluice} topics gone`)',
    'command: sluice topics apply --topics-check warn',
    'throw new Error(`sluice needs Node; the log of sluice worker has it`)',
  ].join('\n')
  expect(spokenFaults({ file: 'src/say.ts', text }, facts)).toEqual([
    'src/say.ts:1 names `sluice topics gone`, but there is no such command',
    "src/say.ts:2 names --gone, which `sluice worker` doesn't take",
    'src/say.ts:3 names `sluice topics gone`, but there is no such command',
  ])
})

function readersOf(text: string): number {
  return readerFaults({ file: 'docs/page.md', text }).length
}

test('a page says in its first hundred words whom it is for, outside of code', () => {
  expect(readersOf('# Page\n\nThis page is for operators.\n')).toBe(0)
  expect(readersOf('# Page\n\nIt says how.\n')).toBe(1)
  expect(readersOf(`# Page\n\n${block('this is for code')}`)).toBe(1)
  expect(readersOf(`# Page\n\n${'word '.repeat(100)}This page is for operators.\n`)).toBe(1)
})

test('an anchor is what GitHub makes of a heading', () => {
  expect([...anchorsOf('# `a.b`: C & d_e\n## X\n## X\n```\n# not one\n```\n## [Y](z)')]).toEqual([
    'ab-c--d_e',
    'x',
    'x-1',
    'y',
  ])
})

test('a diagram that Mermaid can read has no fault, and one that it can’t has one', async () => {
  expect(await diagramFault('flowchart LR\n a[one] -->|two| b{three}')).toBeUndefined()
  expect(await diagramFault('sequenceDiagram\n A->>B: hi')).toBeUndefined()
  expect(await diagramFault('stateDiagram-v2\n [*] --> A: x')).toBeUndefined()
  expect(await diagramFault('flowchart LR\n a[one --> b')).toMatch(/^Parse error/)
  expect(await diagramFault('flowchort LR')).toMatch(/No diagram type/)
})

const index = (rows: string): { file: string; text: string } => ({
  file: 'docs/decisions/README.md',
  text: `# Decisions\n\n|   | decision | status | answers |\n|---|---|---|---|\n${rows}`,
})
const first = { file: 'docs/decisions/001-one.md', text: '# 1. One\n\n**Context.** Short.\n' }
const second = {
  file: 'docs/decisions/002-two.md',
  text: '# 2. Two\n\nStatus: superseded by [1](001-one.md): it is shorter.\n\n**Context.**\n',
}
const rowOfFirst = '| 1 | [One](001-one.md) | accepted | why |\n'
const rowOfSecond = '| 2 | [Two](002-two.md) | superseded by 1 | why |\n'

test('decisions that the index tells as they are have no fault', () => {
  expect(decisionFaults([first, second], index(rowOfFirst + rowOfSecond))).toEqual([])
})

test.each([
  ['is too long', [{ ...first, text: first.text + ' word'.repeat(250) }], rowOfFirst, /has 25\d words/],
  ['is not in the index', [first, second], rowOfFirst, /002-two\.md: is not in/],
  ['has another title', [first], rowOfFirst.replace('One', 'Uno'), /tells title "Uno"; here it is "One"/],
  [
    'has another status',
    [first, second],
    rowOfFirst + rowOfSecond.replace('superseded by 1', 'accepted'),
    /tells status/,
  ],
  ['is gone', [first], rowOfFirst + rowOfSecond, /lists 002-two\.md, which doesn't exist/],
  ['gives way to one that is gone', [second], rowOfSecond, /names decision 1, which doesn't exist/],
  ['stands in the wrong place', [first, second], rowOfSecond + rowOfFirst, /sort the rows/],
  [
    'has a name of another number',
    [{ ...first, file: 'docs/decisions/003-one.md' }],
    rowOfFirst.replace('001', '003'),
    /another number/,
  ],
])('a decision that %s is a fault', (_, decisions, rows, fault) => {
  expect(decisionFaults(decisions, index(rows))).toEqual([expect.stringMatching(fault)])
})
