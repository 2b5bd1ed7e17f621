import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')
const hook = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      process.stderr.write(url + '\\n')
      return next(url, context)
    },
  })
`)}`

/** Returns the files and packages that a command loads. */
function loadedBy(args: readonly string[]): string[] {
  const { status, stderr } = spawnSync(process.execPath, ['--import', hook, main, ...args], {
    encoding: 'utf8',
  })
  expect(status).toBe(0)
  return stderr.split('\n').map((url) => url.replace(/^.*\/node_modules\//, '').replace(/^.*\/src\//, 'src/'))
}

test.each([
  ['help', ['worker', '--help']],
  ['completion', ['complete', '--', 'log', 's']],
])('%s loads no role, no Kafka client, no HTTP client or server, no logger and no schemas', (_what, args) => {
  const loaded = loadedBy(args)
  expect(loaded).toContain('src/commands/role-commands.ts')
  const heavy =
    /^(src\/(delivery|gateway|audience|pipeline)\/|src\/roles\/worker\.ts|(kafkajs|undici|fastify|pino|typebox|yaml)\/)/
  expect(loaded.filter((file) => heavy.test(file))).toEqual([])
})
