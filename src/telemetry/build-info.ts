import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The version of this program and the commit that it was built from. */
export type BuildInfo = {
  /** The version in package.json. */
  version: string
  /**
   * Twelve hex digits, with `-dirty` if files had changed since the commit. `unknown` if there is no
   * information.
   */
  commit: string
  /** The time of the commit, ISO 8601 in UTC. `unknown` if there is no information. */
  date: string
}

export type Commit = Omit<BuildInfo, 'version'>

const root = new URL('../../', import.meta.url)
/** The file that `npm run build` writes into `dist`. */
const noted = new URL('../build.json', import.meta.url)

/** Returns the information that the build has noted. In a checkout, asks git, which takes 20 ms. */
export function buildInfo(): BuildInfo {
  const { version } = readJson(new URL('package.json', root))
  if (existsSync(noted)) {
    const { commit, date } = readJson(noted)
    return { version: String(version), commit: String(commit), date: String(date) }
  }
  return { version: String(version), ...commitOf(root) }
}

/** Returns the commit of a checkout. For any other folder, the fields of the result are `unknown`. */
export function commitOf(folder: URL): Commit {
  // Without this check, git would describe any repository in which the folder happens to be.
  if (!existsSync(new URL('.git', folder))) return unknown
  try {
    const cwd = fileURLToPath(folder)
    const commit = git(cwd, ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'])
    return { commit, date: utc(git(cwd, ['log', '-1', '--format=%cI'])) }
  } catch {
    return unknown
  }
}

/** Describes a build, such as `0.1.0 (commit 0123456789ab of 2026-01-01T00:00:00Z)`. */
export function describeBuild({ version, commit, date }: BuildInfo): string {
  return `${version} (commit ${commit} of ${date})`
}

/** Converts an ISO time with an offset to UTC, to the second. */
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
