import { appendFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { afterAll, type RunnerTask } from 'vitest'
import { patternOf, readShown } from '../../scripts/log-lines/shown-lines.ts'
import { takeLines } from './emitted-lines.ts'

/**
 * Fails a test file that doesn't show a line of the log which `scripts/log-lines/shown.yaml` says that it shows. Looks
 * only if all tests of the file have run, and passed. `TEST_LOG_LINES=FILE` adds what each test file shows to a file.
 */
const root = resolve(import.meta.dirname, '../..')
const { shown } = readShown(root)

// This hook runs last. Hooks of a test file run before hooks that were registered earlier, like this one.
// oxlint-disable-next-line no-empty-pattern -- vitest reads the names of fixtures from this pattern
afterAll(({}, suite) => {
  const file = relative(root, suite.file.filepath)
  const lines = [...takeLines()]
  const { TEST_LOG_LINES: record } = process.env
  if (record !== undefined)
    appendFileSync(record, lines.map((line) => `${JSON.stringify({ file, line })}\n`).join(''))
  if (!suite.tasks.every(hasPassed)) return
  const missing = (shown[file] ?? []).filter((line) => !lines.some((one) => patternOf(line).test(one)))
  if (missing.length > 0)
    throw new Error(
      `${file} no longer shows these lines of the log, see scripts/log-lines/shown.yaml: ${missing.join('; ')}`,
    )
})

function hasPassed(task: RunnerTask): boolean {
  return task.type === 'suite' ? task.tasks.every(hasPassed) : task.result?.state === 'pass'
}
