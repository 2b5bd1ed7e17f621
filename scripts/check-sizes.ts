import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { lastColumn, wrapComments } from './comments.ts'
import { type Baseline, baselineOf, baselineText, compareWithBaseline } from './ratchet.ts'
import { measureSizes, type SizeLimits } from './sizes.ts'

/**
 * `npm run check:sizes`: fails in each of these cases.
 *
 * - A file has more lines, or a function more lines or more parameters, than the limits and
 *   `scripts/size-baseline.json` allow.
 * - The baseline allows more than is needed. `--shrink` then writes a smaller baseline. It writes nothing if
 *   anything has grown.
 * - A line of a comment in `src` is too long. `--wrap` wraps such comments.
 *
 * Names each file with more than `manyLines` lines, but doesn't fail because of it. A file has one idea, and
 * an idea may be long.
 */
const root = resolve(import.meta.dirname, '..')
const baselineFile = join(root, 'scripts/size-baseline.json')
const limits: SizeLimits = { 'max-lines': 600, 'max-lines-per-function': 60, 'max-params': 4 }
const manyLines = 400

const all = await measureSizes(root, { ...limits, 'max-lines': manyLines }, [
  'src',
  'bench',
  'demo',
  'drill',
  'scripts',
  'test',
])
/** Files that are tables. They may be long, because a table grows with its rows. */
const tables = new Set([
  'scripts/dashboard-panels.ts',
  'src/telemetry/common-metrics.ts',
  'src/telemetry/worker-metrics.ts',
  'src/telemetry/gateway-metrics.ts',
])
const long = all.filter(
  ({ file, rule }) => rule === 'max-lines' && !tables.has(file) && file.startsWith('src/'),
)
for (const { file, size } of long)
  console.log(
    `${file} has ${size} lines: does it have more than one idea? (only a note, from ${manyLines} lines)`,
  )
const found = all.filter(({ file, rule, size }) => {
  if (rule === 'max-lines' && size <= limits[rule]) return false
  if (tables.has(file)) return rule === 'max-params'
  // In a test file, a whole group of tests is one function.
  return rule !== 'max-lines-per-function' || !file.startsWith('test/')
})
const baseline: Baseline = JSON.parse(readFileSync(baselineFile, 'utf8'))
const { grown, shrunk } = compareWithBaseline(found, baseline, limits)

const overlong = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((file) => {
  const text = readFileSync(join(root, file), 'utf8')
  const wrapped = wrapComments(text)
  if (wrapped !== text && process.argv.includes('--wrap')) writeFileSync(join(root, file), wrapped)
  return wrapped !== text && !process.argv.includes('--wrap')
})
for (const file of overlong) console.log(`${file}: a comment goes beyond column ${lastColumn}`)
if (overlong.length > 0) {
  console.log('`npm run check:sizes -- --wrap` wraps them.')
  process.exitCode = 1
}
for (const fault of grown) console.log(fault)
if (grown.length > 0) {
  console.log('Split what has grown. scripts/size-baseline.json only shrinks.')
  process.exitCode = 1
} else if (process.argv.includes('--shrink')) {
  writeFileSync(baselineFile, baselineText(baselineOf(found)))
  console.log('wrote scripts/size-baseline.json')
} else if (shrunk.length > 0) {
  for (const fault of shrunk) console.log(fault)
  console.log('Run `npm run check:sizes -- --shrink`, and commit scripts/size-baseline.json.')
  process.exitCode = 1
}
