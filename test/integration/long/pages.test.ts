import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { giveInput } from '../../../scripts/give-input.ts'
import type { PageCommand } from '../../../scripts/page-commands.ts'
import { urlsDigestOf } from '../../../src/catalog/auto-pause.ts'
import { freePorts } from '../../../src/development/free-ports.ts'
import { installHelm } from '../../deploy/tools.ts'
import { startUp, type Up } from '../../e2e/up-process.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { ensureCommands, findOnPath } from '../../support/debian.ts'
import { kubectl } from '../../support/kubernetes-programs.ts'
import { allCommands, onlyRead, reasonOf } from '../../support/page-commands.ts'
import { writePause } from '../../support/pauses.ts'
import { startPublicApi, writePageFiles, writePrograms } from '../../support/page-scene.ts'
import { until } from '../../support/until.ts'

/**
 * Runs the commands of README.md, of the pages in docs, clients and deploy/runbooks, and of the help, one after the
 * other, in the folder of a `sluice up` that has what the pages speak of: the destinations crm and erp, a message
 * order-4711, and so on. Only hosts, ports, days and ids differ. `test/support/page-commands.ts` says which commands
 * aren't run, and why. Of those that need Docker, a cluster or somebody else's server, the syntax is checked.
 */

const endsWithinMs = 120_000
const day = 86_400_000

let folder: string
let up: Up
let receiver: CountingReceiver
let publicApi: Awaited<ReturnType<typeof startPublicApi>>
let env: NodeJS.ProcessEnv
let ports: readonly number[]

beforeAll(async () => {
  ensureCommands({ jq: 'jq', script: 'bsdutils' })
  folder = mkdtempSync(join(tmpdir(), 'sluice-pages-'))
  receiver = await startCountingReceiver()
  publicApi = await startPublicApi()
  ports = await freePorts(4)
  writePrograms(folder)
  // Without a catalog file: the destinations are in the topic, where commands change them.
  up = await startUp(folder, { variables: { SLUICE_ATTEMPTS_INDEX: 'properties.orderId' } })
  env = environment()
  await beginPage()
  await succeed('sluice topics apply', withKafka())
  await until('a message can be sent', async () => (await run(here(trackOrder))).code === 0)
  await receiver.behave('/erp', { status: 404 })
  for (let n = 0; n < 30; n++) await run(here(trackOrder.replace('order-4711', `order-${n}`)))
  await until('it is in the delivery log', async () => (await run('sluice log find 4711')).code === 0, {
    timeoutMs: 60_000,
  })
  await until('there are dead letters', async () => {
    const { said } = await run('sluice log search --destination erp --reason failed_for_good')
    return said.includes('failed_for_good')
  })
  await receiver.behave('/erp', {})
})

afterAll(async () => {
  await up.interrupt()
  publicApi.stop()
  await receiver.stop()
  rmSync(folder, { recursive: true, force: true })
})

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
  /** What has happened before. The ids that it shows are used. */
  readonly after?: (command: string) => unknown
}

const outcomes: readonly Outcome[] = [
  { command: /^(npx )?sluice up\b/, codes: [1], says: /runs in this folder already/ },
  { file: 'README.md', command: /^npx sluice topics apply/, env: withKafka },
  { command: /^(npx )?sluice worker\b/, until: /worker started/, env: withKafka },
  { command: /^(npx )?sluice gateway\b/, until: /gateway started/, env: withKafka },
  { command: /^(npx )?sluice admin\b(?! token)/, until: /admin started/, env: withKafka },
  { command: /sluice listen\b/, until: /Listening to/ },
  { command: /^sluice log tail\b/, until: /destination/ },
  {
    command: /^sluice catalog (undo|history --revision)/,
    asks: true,
    after: () => run('sluice destinations pause billing; sluice catalog history'),
  },
  {
    command: /^sluice catalog restore backup/,
    after: () => run('sluice catalog export --sealed backup.jsonl'),
  },
  { command: /^sluice catalog (restore (?!-)|accept)/, asks: true },
  { command: /^sluice apply /, asks: true },
  { command: /^sluice destinations drop (?!.*--dry-run)/, asks: true },
  { command: /^sluice sources key \w+ --end/, asks: true },
  // As a worker pauses it if all its URLs have failed for too long.
  {
    command: /sluice destinations resume crm$/,
    after: () => {
      const hook = { id: '', url: receiver.url('/crm'), origin: '', path: '', headers: [] }
      const urls = urlsDigestOf({ hooks: [hook] })
      return writePause('crm', { prefix: 'sluice.', brokers: [up.broker], urls })
    },
  },
  { command: /^sluice replay show/, after: () => run('sluice replay list') },
  { command: /^sluice replay stop/, after: () => run(here(slowReplay)) },
  {
    command: /^sluice replay resume/,
    after: async () => {
      await run(here(slowReplay))
      await run(`sluice replay stop ${shown.replay}`)
    },
  },
  {
    command: /sluice tokens create|\/v1\/tokens/,
    after: (command) => run(`sluice tokens rm ${/name[": ]+([\w-]+)/.exec(command)?.[1]}`),
  },
  // The id of the page is nobody's here.
  { command: /\/v1\/sessions\/of\//, codes: [22], says: /There is no session of/ },
  // The search of the last hour may find nothing.
  { command: /^sluice log (search|scan)\b/, codes: [0, 3] },
]

/** Takes half a minute, so that it can be stopped. */
const slowReplay = 'sluice replay events --destination warehouse --from 2026-07-21 --again --rate 1 --detach'

const runnable = allCommands.filter((command) => reasonOf(command) === undefined)
let page = ''

test.each(runnable.map((one) => [titleOf(one), one] as const))('%s', async (_title, command) => {
  if (command.group !== page) {
    page = command.group
    await beginPage()
  }
  const outcome = outcomes.find(
    ({ file = command.file, command: matches }) => file === command.file && matches.test(command.text),
  )
  await outcome?.after?.(command.text)
  const text = [...command.before, command.text, ...checkOf(command)].map(here).join('\n')
  const { code, said } = await (outcome?.until === undefined
    ? (outcome?.asks ? runAndAgree : run)(text, outcome?.env?.())
    : runUntil(text, outcome.until, outcome.env?.()))
  expect(outcome?.codes ?? [0], `${text}\nsaid: ${said}`).toContain(code)
  if (outcome?.says !== undefined) expect(said).toMatch(outcome.says)
})

const read = allCommands.filter((command) => onlyRead.has(reasonOf(command)?.needs ?? 'elsewhere'))

test('the syntax of commands that need Docker, a cluster or somebody else is right', async () => {
  expect(read.length).toBeGreaterThan(10)
  // A build of kubectl takes minutes. Each version of the last years knows these flags.
  const programs = { helm: await installHelm(), kubectl: findOnPath('kubectl') ?? (await kubectl()) }
  const asking = Object.entries(programs).map(([name, file]) => `${name}() { ask '${file}' "$@"; }`)
  const faults: string[] = []
  for (const { file, line, text, before } of read) {
    // Words such as OWNER and <broker> stand for what a reader fills in.
    const command = [...before, text].join('\n').replaceAll(/<[a-z-]+>|…/g, 'WORD')
    const isAsked = /^(helm|kubectl) /.test(text)
    const { code, said } = await run(
      isAsked ? [askForHelp, ...asking, command].join('\n') : `bash -n <<'E'\n${command}\nE`,
    )
    if (code !== 0 || /unknown|invalid/.test(said)) faults.push(`${file}:${line} ${text}: ${said}`)
  }
  expect(faults).toEqual([])
})

/** A program that is asked for help with all flags of a command says which of them it doesn't know. */
const askForHelp = `ask() {
  local words=() isOver=
  for word in "$@"; do
    if [ "$word" = -- ] && [ -z "$isOver" ]; then words+=(--help); isOver=yes; fi
    words+=("$word")
  done
  [ -n "$isOver" ] || words+=(--help)
  "\${words[@]}" > /dev/null
}`

/** The last of several settings is followed by a look at all of them. */
function checkOf({ file, line, text }: PageCommand): string[] {
  const isLast = !allCommands.some((one) => one.file === file && one.line === line + 1)
  return text.startsWith('export SLUICE_') && isLast ? ['sluice config'] : []
}

function titleOf({ file, line, text }: PageCommand): string {
  return `${file}:${line} ${text.replaceAll('%', '%%')}`
}

/** A reader of a page has its files, and the destinations as they are in the catalog file. */
async function beginPage(): Promise<void> {
  writePageFiles(folder, { url: (path) => receiver.url(path), token: String(env['TOKEN']) })
  await succeed('sluice catalog import catalog.yaml')
}

/** Ids that commands have shown. Pages show ids of their own in later commands. */
const shown = { replay: '', revision: '', writeKey: '' }

function remember(said: string): void {
  shown.replay = /\b\d{8}-\d{6}-[0-9a-f]{6}\b/.exec(said)?.[0] ?? shown.replay
  shown.writeKey = /\bwk_[\w-]+/.exec(said)?.[0] ?? shown.writeKey
  shown.revision = /^ *(\d{5,}) /m.exec(said)?.[1] ?? shown.revision
}

/** Returns a command with the hosts, ports, files, days and ids of this test in the place of those of the page. */
function here(command: string): string {
  const admin = adminOrigin()
  const shiftMs = Math.floor(Date.now() / day) * day - Date.parse('2026-07-24')
  return (
    command
      .replaceAll('https://ops.example.com/sluice/', `${admin}/`)
      .replaceAll(/(?<=--url )https:\/\/ops\.example\.com\/sluice/g, admin)
      .replaceAll(
        'https://sluice-admin.example.com SLUICE_ADMIN_TOKEN=…',
        `${admin} SLUICE_ADMIN_TOKEN=$TOKEN`,
      )
      .replaceAll(/https:\/\/(sluice\.example|gateway\.example\.com)/g, up.origin)
      .replaceAll('https://api.segmentapis.com', publicApi.origin)
      .replaceAll('http://127.0.0.1:8080', up.origin)
      .replaceAll('http://127.0.0.1:9420', admin)
      .replaceAll('127.0.0.1:3000', new URL(receiver.url('/')).host)
      .replaceAll('kafka-1:9092,kafka-2:9092,kafka-3:9092', up.broker)
      .replaceAll('/etc/', `${folder}/etc/`)
      .replaceAll('20260723-151500-3f9a2c', shown.replay)
      .replaceAll('1785317403', shown.revision)
      .replaceAll('wk_4Hq8', shown.writeKey)
      // Ends of tokens, which are in the future.
      .replaceAll(/(?<=--expires |"expiresAt":")20\d\d(?=-)/g, '2999')
      // Days that have just passed.
      .replaceAll(/2026-07-2\d/g, (date) => new Date(Date.parse(date) + shiftMs).toISOString().slice(0, 10))
      .replaceAll('MESSAGE_ID', 'order-4711')
  )
}

function adminOrigin(): string {
  return /^ {2}admin +(http:\/\/[^/]+)/m.exec(up.said)?.[1] ?? ''
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
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
    SLUICE_STATE_FOLDER: join(folder, 'state-of-a-role'),
  }
}

function environment(): NodeJS.ProcessEnv {
  return {
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    HOME: folder,
    TOKEN: readFileSync(join(folder, '.sluice/admin-token'), 'utf8').trim(),
    SEGMENT_TOKEN: 'a token of Segment',
    EDITOR: 'true',
    SHOP_SERVER_KEY: 'shop-server-key-1',
    PERSONAS_SERVER_KEY: 'personas-server-key-1',
  }
}

/** Runs a command that has to succeed. */
async function succeed(command: string, more: NodeJS.ProcessEnv = {}): Promise<void> {
  const { code, said } = await run(command, more)
  if (code !== 0) throw new Error(`${command} has ended with ${code}: ${said}`)
}

type Ended = { code: number | string | null; said: string }

function run(command: string, more: NodeJS.ProcessEnv = {}, input = ''): Promise<Ended> {
  return new Promise((done) => {
    const options = { cwd: folder, env: { ...env, ...more }, timeout: endsWithinMs }
    const child = execFile('bash', ['-c', command], options, (error, stdout, stderr) => {
      const said = stdout + stderr
      remember(said)
      done({ code: error === null ? 0 : (error.code ?? 'killed'), said })
    })
    giveInput(child, input)
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
