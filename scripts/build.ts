import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Commit, commitOf, utc } from '../src/telemetry/build-info.ts'

/**
 * `npm run build`: makes `dist` anew from `src`, and notes in it what it was made of. Where there is no checkout, as while an image
 * is built, BUILD_COMMIT and BUILD_DATE (ISO 8601) say that.
 */
const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')

rmSync(dist, { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
if (status === 0) writeFileSync(join(dist, 'build.json'), `${JSON.stringify(toldOrFound())}\n`)
else process.exitCode = 1

function toldOrFound(): Commit {
  const { BUILD_COMMIT: commit = '', BUILD_DATE: date = '' } = process.env
  if (commit === '') return commitOf(pathToFileURL(`${root}/`))
  return { commit: commit.slice(0, commit.endsWith('-dirty') ? undefined : 12), date: utc(date) }
}
