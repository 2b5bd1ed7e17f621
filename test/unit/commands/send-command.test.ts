import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')

test('messages on standard input are waited for, however late they come', async () => {
  const command = spawn(process.execPath, [main, 'send', '--source', 'shop'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let stderr = ''
  command.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const closed = once(command, 'close')
  await Promise.race([delay(2_000), closed])
  command.stdin.on('error', () => undefined)
  command.stdin.end('{"type":\n')
  const [code] = await closed
  // The message is read before Kafka is looked for.
  expect(stderr).toContain('sluice: the message is not JSON')
  expect(code).toBe(1)
})
