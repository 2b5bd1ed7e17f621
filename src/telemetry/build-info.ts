import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The version of this program, and the commit from which it was built. */
export type BuildInfo = {
  /** The version in package.json. */
  version: string
  /**
   * The first twelve hex digits of the commit. `-dirty` is added if files had changed since the commit.
   * `unknown` if the commit isn't known.
   */
  commit: string
  /** The time of the commit, in ISO 8601 and UTC. `unknown` if the commit isn't known. */
  date: string
}

export type Commit = Omit<BuildInfo, 'version'>

/** The folder of package.json. All files of a build are in `dist`. */
export const packageFolder = new URL(import.meta.url.endsWith('.ts') ? '../../' : '../', import.meta.url)
/**
 * The file with the build's information. `npm run build` writes it into `dist`. A checkout has no such file.
 */
const noted = new URL('build.json', import.meta.url)

/**
 * Returns the information in the file that the build has written. If there is no such file, as in a checkout,
 * asks git, which takes 20 ms.
 */
export function buildInfo(): BuildInfo {
  const { version } = readJson(new URL('package.json', packageFolder))
  if (existsSync(noted)) {
    const { commit, date } = readJson(noted)
    return { version: String(version), commit: String(commit), date: String(date) }
  }
  return { version: String(version), ...commitOf(packageFolder) }
}

/**
 * Returns the commit of a checkout. If the folder isn't a checkout, all fields of the result are `unknown`.
 */
export function commitOf(folder: URL): Commit {
  // Without this check, git would describe the repository of a parent folder if the folder isn't a checkout
  // itself.
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

/** Converts an ISO time of whole seconds, with a UTC offset, to UTC. */
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
