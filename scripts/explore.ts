import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * `npm run test:explore -- [--minutes N] [FILE…]`: runs property-based tests of `test/unit` again and again,
 * each time with a new seed, until one fails or the time is up (default: 10 minutes). Without files, all
 * tests that use fast-check are run. If a seed fails, prints the seed and the command that runs it again.
 */
const root = join(import.meta.dirname, '..')
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: 'string', default: '10' } },
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) {
  console.error(`--minutes: give a number above 0, not ${values.minutes}`)
  process.exit(2)
}
const endMs = Date.now() + minutes * 60_000
const files = positionals.length > 0 ? positionals : filesWithProperties()

let rounds = 0
while (Date.now() < endMs && process.exitCode === undefined) {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const { status, error } = spawnSync(
    'npx',
    ['vitest', 'run', '--project', 'unit', '--bail', '1', ...files],
    {
      cwd: root,
      env: { AUDIENCE_RUNS: '1000', WHOLE_RUNS: '1000', ...process.env, SLUICE_TEST_SEED: String(seed) },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  if (error !== undefined) throw error
  if (status === 0) rounds++
  else {
    console.log(
      `seed ${seed} fails: SLUICE_TEST_SEED=${seed} npx vitest run --project unit ${files.join(' ')}`,
    )
    process.exitCode = 1
  }
}
console.log(`${rounds} seeds passed`)

function filesWithProperties(): string[] {
  const all = globSync('test/unit/**/*.test.ts', { cwd: root })
  return all.filter((file) => readFileSync(join(root, file), 'utf8').includes("from 'fast-check'"))
}
