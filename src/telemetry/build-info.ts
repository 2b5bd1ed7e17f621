import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** What this program was made of. */
export type BuildInfo = {
  /** Of package.json. */
  version: string
  /** Twelve hex digits; with `-dirty` where files had been changed since. `unknown`, where nobody said. */
  commit: string
  /** When it was committed, ISO 8601 in UTC; `unknown`, where nobody said. */
  date: string
}

export type Commit = Omit<BuildInfo, 'version'>

const root = new URL('../../', import.meta.url)
/** `npm run build` leaves it in `dist`. */
const noted = new URL('../build.json', import.meta.url)

/** Of a build what was noted then, in a checkout what git says: 20 ms. */
export function buildInfo(): BuildInfo {
  const { version } = readJson(new URL('package.json', root))
  if (existsSync(noted)) {
    const { commit, date } = readJson(noted)
    return { version: String(version), commit: String(commit), date: String(date) }
  }
  return { version: String(version), ...commitOf(root) }
}

/** The commit of a checkout; of another folder nothing is known. */
export function commitOf(folder: URL): Commit {
  // Else git would tell of the repository that the folder happens to lie in.
  if (!existsSync(new URL('.git', folder))) return unknown
  try {
    const cwd = fileURLToPath(folder)
    const commit = git(cwd, ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'])
    return { commit, date: utc(git(cwd, ['log', '-1', '--format=%cI'])) }
  } catch {
    return unknown
  }
}

/** `0.1.0 (commit 0123456789ab of 2026-01-01T00:00:00Z)` */
export function describeBuild({ version, commit, date }: BuildInfo): string {
  return `${version} (commit ${commit} of ${date})`
}

/** Of an ISO time with an offset the same in UTC, to the second. */
export function utc(time: string): string {
  return new Date(time).toISOString().replace('.000Z', 'Z')
}

const unknown: Commit = { commit: 'unknown', date: 'unknown' }
const answersWithinMs = 2_000

function git(cwd: string, args: readonly string[]): string {
  const answer = execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    timeout: answersWithinMs,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return answer.trim()
}

function readJson(file: URL): Record<string, unknown> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- files of our own
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
}
