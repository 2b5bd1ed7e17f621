import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../src/development/free-ports.ts'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { ensureCommands, installWithApt } from '../support/debian.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

/**
 * Tests of the examples in `examples`, which the page docs/quickstarts.md shows: each sends a message, and each
 * receives those of all others, with the right signature only, and once.
 */

const folder = resolve(import.meta.dirname, '../../examples')
const secret = 'ein Geheimnis 🔑'
const startMs = 120_000

type Example = { language: string; send: string[]; receive: (port: number) => string[] }

const examples: readonly Example[] = [
  {
    language: 'node',
    send: [process.execPath, 'send.mjs'],
    receive: () => [process.execPath, 'receive.mjs'],
  },
  { language: 'python', send: ['python3', 'send.py'], receive: () => ['python3', 'receive.py'] },
  { language: 'go', send: ['go', 'run', './send'], receive: () => ['go', 'run', './receive'] },
  { language: 'java', send: ['java', 'Send.java'], receive: () => ['java', 'Receive.java'] },
  {
    language: 'php',
    send: ['php', 'send.php'],
    receive: (port) => ['php', '-S', `127.0.0.1:${port}`, 'receive.php'],
  },
  { language: 'ruby', send: ['ruby', 'send.rb'], receive: () => ['ruby', 'receive.rb'] },
]

type Running = { language: string; port: number; readonly said: string; stop: () => void }

let scratch: string
let receivers: Running[]
let scene: Scene
let gateway: SluiceProcess
let worker: SluiceProcess

beforeAll(async () => {
  ensureCommands({ php: 'php-cli', ruby: 'ruby' })
  if (spawnSync('ruby', ['-rwebrick', '-e', '']).status !== 0) installWithApt(['ruby-webrick'], 'webrick')
  scratch = mkdtempSync(join(tmpdir(), 'sluice-examples-'))
  const ports = await freePorts(examples.length)
  receivers = examples.map((example, index) => startExample(example, ports[index] ?? 0))
  await Promise.all(receivers.map(untilItListens))
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['shop-write-key'] }],
      destinations: receivers.map(({ language, port }) => ({
        id: language,
        sources: ['shop'],
        sharedSecret: secret,
        hooks: [{ url: `http://127.0.0.1:${port}/webhook` }],
      })),
    },
    variables: unhurried,
  })
  ;[gateway, worker] = await Promise.all([
    startSluice(scene.variables, { role: 'gateway' }),
    startSluice(scene.variables),
  ])
}, 10 * 60_000)

afterAll(async () => {
  // First of all: they would outlive a start that has failed.
  for (const receiver of receivers) receiver.stop()
  await worker.terminate()
  await gateway.terminate()
  scene.close()
  rmSync(scratch, { recursive: true, force: true })
})

test.each(examples.map(({ language, send }) => [language, send] as const))(
  '%s sends a message, which all receive',
  async (language, [command = '', ...args]) => {
    const { stdout } = await promisify(execFile)(command, args, {
      cwd: join(folder, language),
      env: {
        ...process.env,
        SLUICE_URL: `http://127.0.0.1:${gateway.gatewayPort}`,
        WRITE_KEY: 'shop-write-key',
      },
    })
    const messageId = stdout.trim()
    expect(messageId).toMatch(/^[\w-]{32,36}$/)
    for (const receiver of receivers)
      await until(`${receiver.language} has it`, () => receiver.said.includes(messageId))
  },
  startMs,
)

test.each(examples.map(({ language }) => language))(
  'the receiver in %s refuses another secret with 401, and takes a repeat without working on it again',
  async (language) => {
    const receiver = receivers.find((one) => one.language === language)
    const messageId = `twice-${language}`
    const body = JSON.stringify({ type: 'track', messageId, userId: 'ü1 \u2028', event: 'Zoë <&> 👩‍🚀' })
    const send = async (key: string): Promise<number> => {
      const headers = {
        'content-type': 'application/json',
        'x-sluice-message-id': messageId,
        'x-signature': createHmac('sha1', key).update(body).digest('hex'),
      }
      const url = `http://127.0.0.1:${receiver?.port}/webhook`
      return (await fetch(url, { method: 'POST', headers, body })).status
    }
    expect([await send('another secret'), await send(secret), await send(secret)]).toEqual([401, 200, 200])
    await until('it says so', () => receiver?.said.includes(messageId))
    expect(receiver?.said.split(messageId)).toHaveLength(2)
  },
)

function startExample({ language, receive }: Example, port: number): Running {
  const [command = '', ...args] = receive(port)
  const child = spawn(command, args, {
    cwd: join(folder, language),
    // `go run` starts another process: both are in a group of their own.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret, TMPDIR: scratch },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return {
    language,
    port,
    get said() {
      return said
    },
    stop: () => void process.kill(-(child.pid ?? 0), 'SIGTERM'),
  }
}

async function untilItListens({ language, port }: Running): Promise<void> {
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  await until(`the receiver in ${language} listens`, answers, { timeoutMs: startMs })
}
