import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { until } from '../../../support/until.ts'
import { unwindMs } from '../../../../src/roles/start/parts.ts'

const src = resolve(import.meta.dirname, '../../../../src')
/** A process that needs longer to end counts as hung, and is killed. */
const hangsAfterMs = 30_000

/**
 * Starts a role that adds one part and whose start then never ends. Sends SIGTERM. Returns how the process
 * ended. `stop` is the source text of the function that stops the part.
 */
async function stopDuringStart(
  stop: string,
): Promise<{ code: unknown; output: readonly string[]; tookMs: number }> {
  const script = `
    import { runRole } from '${src}/commands/command/run-role.ts'
    import { readConfig } from '${src}/config/read.ts'
    const { config } = readConfig({ env: {} })
    setInterval(() => undefined, 1_000)
    await runRole(async ({ parts }) => {
      parts.defer(${stop})
      process.stderr.write('starting')
      await new Promise(() => undefined)
    }, config)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  const closed = once(child, 'close')
  await once(child.stderr, 'data')
  const sinceMs = performance.now()
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), hangsAfterMs)
  const [code] = await closed
  clearTimeout(timer)
  const output = stdout.split('\n').flatMap((line) => (line === '' ? [] : [String(JSON.parse(line).msg)]))
  return { code, output, tookMs: performance.now() - sinceMs }
}

test('a signal during the start ends the process in time, although a part does not stop', async () => {
  const { code, output, tookMs } = await stopDuringStart('() => new Promise(() => undefined)')
  expect({ code, output }).toEqual({ code: 0, output: ['stopped'] })
  expect(tookMs).toBeGreaterThanOrEqual(unwindMs)
})

test('a part that fails to stop after a signal during the start is no failure of the role', async () => {
  const { code, output } = await stopDuringStart('() => Promise.reject(new Error("it is half open"))')
  expect({ code, output }).toEqual({ code: 0, output: ['stopped'] })
})

test('a process that gets SIGUSR2 examines itself, and goes on', async () => {
  const script = `
    import { runRole } from '${src}/commands/command/run-role.ts'
    import { readConfig } from '${src}/config/read.ts'
    const { config } = readConfig({ env: {} })
    setInterval(() => undefined, 1_000)
    await runRole(async ({ log }) => log.info('started'), config)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const messages: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => messages.push(String(JSON.parse(line).msg)))
  const says = (text: string) => until(`it says: ${text}`, () => messages.some((one) => one.startsWith(text)))
  await says('started')
  child.kill('SIGUSR2')
  await says('this process is examined')
  child.kill('SIGTERM')
  expect(await closed).toEqual([0, null])
  expect(messages).toContain('the level of the log is debug for a while')
})
