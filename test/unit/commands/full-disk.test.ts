import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../../../src')
const hangsAfterMs = 10_000

/** Opens an output that refuses each write, as a file on a full disk does. */
const openFull = (): number => openSync('/dev/full', 'w')

/** A role that logs all the time until a signal ends it. It tells on standard error that it runs. */
const role = `
  import { runRole } from '${src}/commands/command/run-role.ts'
  import { readConfig } from '${src}/config/read.ts'
  const { config } = readConfig({ env: {} })
  await runRole(async ({ log, parts }) => {
    const timer = setInterval(() => log.info({ rest: 'x'.repeat(20_000) }, 'at work'), 10)
    parts.defer(() => clearInterval(timer))
    setTimeout(() => process.stderr.write('runs'), 100)
  }, config)`

test('a role goes on while its log can not be written, says so once, and ends in good order', async () => {
  const full = openFull()
  const child = spawn(process.execPath, ['--input-type=module', '-e', role], {
    stdio: ['ignore', full, 'pipe'],
  })
  closeSync(full)
  let stderr = ''
  const runs = Promise.withResolvers<void>()
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    if (stderr.includes('runs')) runs.resolve()
  })
  const closed = once(child, 'close')
  const timer = setTimeout(() => child.kill('SIGKILL'), hangsAfterMs)
  await Promise.race([runs.promise, closed])
  child.kill('SIGTERM')
  const [code] = await closed
  clearTimeout(timer)
  expect(code).toBe(0)
  expect(stderr.replace('runs', '')).toBe(
    'sluice: the log can not be written (ENOSPC): lines are lost until it can be.\n',
  )
})

test('results that can not be written are a failure that is told in one line', () => {
  const full = openFull()
  const { status, stderr } = spawnSync(process.execPath, [resolve(src, 'main.ts'), 'topics', 'list'], {
    encoding: 'utf8',
    stdio: ['ignore', full, 'pipe'],
  })
  closeSync(full)
  expect(stderr).toMatch(/^sluice: standard output can not be written: ENOSPC[^\n]+\n$/)
  expect(status).toBe(1)
})

test('progress and warnings that can not be written change nothing', () => {
  const full = openFull()
  const { status, stdout } = spawnSync(process.execPath, [resolve(src, 'main.ts'), 'topics', 'list'], {
    encoding: 'utf8',
    env: {
      PATH: process.env['PATH'],
      SLUICE_KAFKA_SASL_MECHANISM: 'plain',
      SLUICE_KAFKA_SASL_USERNAME: 'ann',
      SLUICE_KAFKA_SASL_PASSWORD: 'secret',
    },
    stdio: ['ignore', 'pipe', full],
  })
  closeSync(full)
  expect(stdout).toContain('sluice.events ')
  expect(status).toBe(0)
})
