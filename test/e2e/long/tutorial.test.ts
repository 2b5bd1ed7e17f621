import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { blocksOf } from '../../../scripts/markdown-page.ts'
import { freePorts } from '../../../src/development/free-ports.ts'
import { until } from '../../support/until.ts'

/**
 * Runs docs/tutorial.md: saves its files, starts its endpoint and `sluice up`, and runs its commands one block
 * after the other, as a reader does. Only ports differ, because the test shares the machine.
 */

const page = readFileSync(resolve(import.meta.dirname, '../../../docs/tutorial.md'), 'utf8')
const longRunning = new Set(['node receiver.mjs', 'npx sluice up'])

let folder: string
let env: NodeJS.ProcessEnv
let ports: readonly number[]
const running: { child: ChildProcess; said: string }[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-tutorial-'))
  ports = await freePorts(5)
  const [gateway, , http, admin, index] = ports
  writeFileSync(
    join(folder, 'npx'),
    `#!/bin/sh\nshift\nexec '${process.execPath}' '${inject('program')}' "$@"\n`,
  )
  chmodSync(join(folder, 'npx'), 0o755)
  env = {
    PATH: `${folder}:${process.env['PATH']}`,
    HOME: process.env['HOME'],
    SLUICE_GATEWAY_PORT: String(gateway),
    SLUICE_HTTP_PORT: String(http),
    SLUICE_ADMIN_PORT: String(admin),
    SLUICE_INDEX_PORT: String(index),
    SLUICE_TOPICS_PARTITIONS: '3',
  }
})

afterAll(async () => {
  for (const { child } of running.toReversed()) {
    const exited = new Promise((done) => child.once('exit', done))
    if (child.exitCode === null && child.pid !== undefined) {
      process.kill(-child.pid, 'SIGINT')
      await exited
    }
  }
  rmSync(folder, { recursive: true, force: true })
})

/** What has to be seen after a block, by a line of the block. */
const seen: Readonly<Record<string, RegExp>> = {
  'npx sluice up': /gateway +http/,
  'order-4711': /200 order-4711/,
  'for n in': /503 order-4712[^]*503 order-4714|503 order-4714[^]*503 order-4712/,
  'destinations retry-now': /(?:200 order-471[234][^]*){3}/,
  'order-4715': /404 order-4715/,
  'replay dead-letters --destination my-service\n': /200 order-4715/,
}

/** What a block prints, by a line of the block. */
const printed: Readonly<Record<string, RegExp>> = {
  'sluice status\n': /my-service +failing[^]*503[^]*503[^]*next try/,
  'destinations test': /status 200/,
  'log find order-4715': /404[^]*failed_for_good[^]*\b1\b/,
}

test('the tutorial works as it says', async () => {
  for (const { language, text } of blocksOf(page)) {
    if (language === 'js' || language === 'yaml') {
      const [, name = ''] = /^(?:\/\/|#) (\S+)\n/.exec(text) ?? []
      writeFileSync(join(folder, name), here(text))
    }
    if (language !== 'sh') continue
    const expected = Object.entries(printed).find(([line]) => text.includes(line))?.[1]
    // The index of the delivery log and the status are some moments behind.
    await until(
      `${text} prints ${expected}`,
      async () => {
        const { isOk, said } = await runBlock(here(text))
        if (!isOk || expected?.test(said) === false) throw new Error(said)
        return true
      },
      { timeoutMs: 120_000 },
    )
    for (const [line, pattern] of Object.entries(seen)) {
      if (!text.includes(line) || text.includes('log find')) continue
      await until(
        `${line.trim()} shows ${pattern}`,
        () => {
          if (!pattern.test(saidByAll())) throw new Error(saidByAll())
          return true
        },
        { timeoutMs: 180_000 },
      )
    }
  }
  expect(running).toHaveLength(2)
}, 600_000)

function saidByAll(): string {
  return running.map(({ said }) => said).join('\n')
}

/** Returns a text of the page with the ports of this test. */
function here(text: string): string {
  return text.replaceAll('8080', String(ports[0])).replaceAll(/\b3000\b/g, String(ports[1]))
}

/**
 * Runs the lines of a block, and returns what they print, and whether all succeeded. What doesn't end stays in the
 * background.
 */
async function runBlock(text: string): Promise<Outcome> {
  const lines = text.split('\n').filter((line) => line !== '')
  const ending = lines.filter((line) => !longRunning.has(line))
  for (const line of lines.filter((one) => longRunning.has(one))) {
    if (ending.length > 0) await run(ending.join('\n'))
    start(line)
    return { isOk: true, said: '' }
  }
  return run(text)
}

function start(line: string): void {
  const child = spawn('sh', ['-c', line], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const one = { child, said: '' }
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (one.said += chunk.toString()))
  running.push(one)
}

type Outcome = { isOk: boolean; said: string }

/** Runs commands, and returns what they print, and whether all of them succeeded. */
async function run(lines: string): Promise<Outcome> {
  return new Promise((done) => {
    execFile('sh', ['-ec', lines], { cwd: folder, env, timeout: 100_000 }, (error, stdout, stderr) =>
      done({ isOk: error === null, said: stdout + stderr }),
    )
  })
}
