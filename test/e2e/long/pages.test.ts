import { execFile, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { stringify } from 'yaml'
import { newSigningKey } from '../../../src/catalog/features/signing-keys.ts'
import { freePorts } from '../../../src/development/free-ports.ts'
import { allCommands, reasonOf } from '../../support/page-commands.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { until } from '../../support/until.ts'
import { startUp, type Up } from '../up-process.ts'
import type { PageCommand } from '../../../scripts/page-commands.ts'

/**
 * Runs the commands of README.md, of the pages in docs and of the help, one after the other, in the folder of a `sluice up` that
 * has what the pages speak of: the destinations crm and erp, a message order-4711, and so on. Only hosts, ports and
 * ids differ. `test/support/page-commands.ts` says which commands aren't run, and why.
 */

const endsWithinMs = 60_000

let folder: string
let up: Up
let receiver: CountingReceiver
let env: NodeJS.ProcessEnv
let ports: readonly number[]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-pages-'))
  receiver = await startCountingReceiver()
  ports = await freePorts(4)
  writeCommands()
  // Without a catalog file: the destinations are in the topic, where commands change them.
  up = await startUp(folder)
  env = environment()
  writeFiles()
  await succeed('sluice catalog import catalog.yaml --yes')
  // The newest change, which a page undoes.
  await succeed('sluice destinations pause billing')
  await until('a message can be sent', async () => (await run(here(trackOrder))).code === 0)
  await until('it is in the delivery log', async () => (await run('sluice log find order-4711')).code === 0)
}, 300_000)

afterAll(async () => {
  await up.interrupt()
  await receiver.stop()
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

const trackOrder = `curl http://127.0.0.1:8080/v1/track -u shop-write-key: -d '{"messageId":"order-4711","userId":"u1","event":"Order Completed","properties":{"orderId":"4711"}}'`

/** What is special about a command. */
type Outcome = {
  readonly file?: string
  readonly command: RegExp
  /** The exit codes that are right. By default, only 0 is. */
  readonly codes?: readonly number[]
  /** What it says. */
  readonly says?: RegExp
  /** It runs until somebody stops it. It has started when it says this. */
  readonly until?: RegExp
  /** It asks a question, which a person at a terminal answers with yes. */
  readonly asks?: true
  /** Variables that it gets beside those of the folder. */
  readonly env?: () => NodeJS.ProcessEnv
}

const outcomes: readonly Outcome[] = [
  { command: /^(npx )?sluice up\b/, codes: [1], says: /runs in this folder already/ },
  { file: 'README.md', command: /^npx sluice topics apply/, says: /created|sluice\./, env: withKafka },
  { command: /^(npx )?sluice worker\b/, until: /worker started/, env: withKafka },
  { command: /^(npx )?sluice gateway\b/, until: /gateway started/, env: withKafka },
  { command: /^(npx )?sluice admin\b(?! token)/, until: /admin started/, env: withKafka },
  { command: /sluice listen\b/, until: /Listening to/ },
  { command: /^sluice log tail\b/, until: /destination/ },
  { command: /^sluice catalog (import (?!.*--(dry-run|yes))|undo|restore (?!-)|accept)/, asks: true },
  { command: /^sluice apply /, asks: true },
  { command: /^sluice destinations drop (?!.*--dry-run)/, asks: true },
  // The search of the last hour may find nothing.
  { command: /^sluice log (search|scan)\b/, codes: [0, 3] },
]

test.each(
  allCommands.filter((command) => reasonOf(command) === undefined).map((one) => [titleOf(one), one] as const),
)('%s', async (_title, command) => {
  const outcome = outcomes.find(
    ({ file = command.file, command: matches }) => file === command.file && matches.test(command.text),
  )
  const text = [...command.before, command.text].map(here).join('\n')
  const { code, said } = await (outcome?.until === undefined
    ? (outcome?.asks ? runAndAgree : run)(text, outcome?.env?.())
    : runUntil(text, outcome.until, outcome.env?.()))
  expect(outcome?.codes ?? [0], `it said: ${said}`).toContain(code)
  if (outcome?.says !== undefined) expect(said).toMatch(outcome.says)
  remember(said)
})

function titleOf({ file, line, text }: PageCommand): string {
  return `${file}:${line} ${text.replaceAll('%', '%%')}`
}

/** Ids that commands have shown. Pages show ids of their own in later commands. */
const shown = { replay: '', revision: '', writeKey: '' }

function remember(said: string): void {
  shown.replay = /\b\d{8}-\d{6}-[0-9a-f]{6}\b/.exec(said)?.[0] ?? shown.replay
  shown.writeKey = /\bwk_[\w-]+/.exec(said)?.[0] ?? shown.writeKey
  shown.revision = /^ *(\d{5,}) /m.exec(said)?.[1] ?? shown.revision
}

/** Returns a command with the hosts, ports, files and ids of this test in the place of those of the page. */
function here(command: string): string {
  const admin = origin('admin')
  return (
    command
      .replaceAll('https://ops.example.com/sluice', admin)
      .replaceAll(
        'https://sluice-admin.example.com SLUICE_ADMIN_TOKEN=…',
        `${admin} SLUICE_ADMIN_TOKEN=$TOKEN`,
      )
      .replaceAll(/https:\/\/(sluice\.example|gateway\.example\.com)/g, up.origin)
      .replaceAll('http://127.0.0.1:8080', up.origin)
      .replaceAll('http://127.0.0.1:9420', admin)
      .replaceAll('127.0.0.1:3000', new URL(receiver.url('/')).host)
      .replaceAll('kafka-1:9092,kafka-2:9092,kafka-3:9092', up.broker)
      .replaceAll('/etc/', `${folder}/etc/`)
      .replaceAll('20260723-151500-3f9a2c', shown.replay)
      .replaceAll('1785317403', shown.revision)
      .replaceAll('wk_4Hq8', shown.writeKey)
      // Ends of tokens, which are in the future.
      .replaceAll(/(?<=(?:--expires |"expiresAt":")\d*)20\d\d(?=-)/g, '2999')
      .replaceAll('MESSAGE_ID', 'order-4711')
  )
}

function origin(part: 'admin' | 'metrics'): string {
  const line = new RegExp(`^ {2}${part} +(http://[^/]+)`, 'm')
  return line.exec(up.said)?.[1] ?? ''
}

/** A role beside `sluice up` has ports, topics and a state of its own. */
function withKafka(): NodeJS.ProcessEnv {
  const [gateway, http, admin] = ports
  return {
    SLUICE_KAFKA_BROKERS: up.broker,
    SLUICE_KAFKA_TOPIC_PREFIX: 'pages.',
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_TOPICS_PARTITIONS: '3',
    SLUICE_GATEWAY_PORT: String(gateway),
    SLUICE_HTTP_PORT: String(http),
    SLUICE_ADMIN_PORT: String(admin),
    SLUICE_WORKER_PROCESSES: '1',
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
    SLUICE_STATE_FOLDER: join(folder, 'state-of-a-role'),
  }
}

function environment(): NodeJS.ProcessEnv {
  return {
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    HOME: folder,
    TOKEN: readFileSync(join(folder, '.sluice/admin-token'), 'utf8').trim(),
    EDITOR: 'true',
    SHOP_SERVER_KEY: 'shop-server-key-1',
    PERSONAS_SERVER_KEY: 'personas-server-key-1',
  }
}

/** Writes the commands that the pages use, as a person in this folder has them. */
function writeCommands(): void {
  mkdirSync(join(folder, 'bin'))
  const sluice = `exec '${process.execPath}' '${inject('program')}' "$@"`
  for (const [name, line] of [
    ['sluice', sluice],
    ['npx', `shift\n${sluice}`],
    ['xdg-open', 'exit 0'],
  ] as const) {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, 'bin', name), 0o755)
  }
  // An answer with an error fails the command.
  writeFileSync(join(folder, '.curlrc'), 'fail-with-body\nsilent\nshow-error\n')
}

/** Writes the files that the pages name. */
function writeFiles(): void {
  const message = {
    type: 'track',
    messageId: 'm1',
    userId: 'u1',
    event: 'Order Completed',
    properties: { total: 200 },
  }
  const of = (id: string, more: object = {}) => ({
    id,
    sources: ['shop'],
    hooks: [{ url: receiver.url(`/${id}`) }],
    ...more,
  })
  const crm = of('crm', {
    sources: ['shop', 'personas'],
    sharedSecret: 'change-me',
    signing: { ed25519: [newSigningKey()] },
    hooks: [{ id: 'primary', url: receiver.url('/crm') }],
  })
  const acme = of('acme-shop', { labels: { tenant: 'acme' } })
  const catalog = {
    sources: [
      { id: 'app', writeKeys: ['app-write-key'] },
      { id: 'shop', writeKeys: ['shop-write-key'], serverKeys: ['shop-server-key-1'] },
      { id: 'personas', serverKeys: ['personas-server-key-1'] },
    ],
    destinations: [crm, ...['erp', 'billing', 'warehouse', 'my-service'].map((id) => of(id)), acme],
  }
  const files: Readonly<Record<string, string>> = {
    'catalog.yaml': stringify(catalog),
    'old.yaml': stringify(catalog),
    'catalog.yaml.old': stringify(catalog),
    'crm.yaml': stringify(crm),
    'acme/acme-shop.yaml': stringify(acme),
    'destinations/acme-shop.yaml': stringify(acme),
    'one-message.json': JSON.stringify(message),
    'private.key': newSigningKey(),
    'messages.ndjson': `${JSON.stringify(message)}\n`,
    'message.json': JSON.stringify(message),
    'vips.csv': 'u1\nu2\nu3\n',
    '.config/sluice/token': env['TOKEN'] ?? '',
  }
  for (const name of ['etc/sluice', 'acme', 'destinations', '.config/sluice'])
    mkdirSync(join(folder, name), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

/** Runs a command that has to succeed. */
async function succeed(command: string): Promise<void> {
  const { code, said } = await run(command)
  if (code !== 0) throw new Error(`${command} has ended with ${code}: ${said}`)
}

type Ended = { code: number | string | null; said: string }

function run(command: string, more: NodeJS.ProcessEnv = {}, input = ''): Promise<Ended> {
  return new Promise((done) => {
    const options = { cwd: folder, env: { ...env, ...more }, timeout: endsWithinMs }
    const child = execFile('bash', ['-c', command], options, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : (error.code ?? 'killed'), said: stdout + stderr }),
    )
    child.stdin?.end(input)
  })
}

/** Runs a command at a terminal, and answers its question with yes. */
function runAndAgree(command: string, more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const file = join(folder, 'command.sh')
  writeFileSync(file, command)
  return run(`script -qec 'bash ${file}' /dev/null`, { TERM: 'xterm', ...more }, 'yes\n')
}

/** Runs a command until it says something, stops it as Ctrl-C does, and returns its exit code. */
async function runUntil(command: string, pattern: RegExp, more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn('bash', ['-c', command], {
    cwd: folder,
    env: { ...env, ...more },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const exited = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
  try {
    await until(
      `it says ${pattern}`,
      () => {
        if (child.exitCode !== null) throw new Error(`it has ended: ${said}`)
        return pattern.test(said)
      },
      { timeoutMs: endsWithinMs },
    )
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
  }
  return { code: await exited, said }
}
