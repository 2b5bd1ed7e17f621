import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'

/**
 * `npm run audit`: asks the registry for known vulnerabilities of what the lock file names, and fails on one that is high or
 * critical. A registry that can't say (a mirror without that endpoint, or none that can be reached) is no failure: it
 * says so, and the next registry will be asked.
 */
const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '..'))
const timeoutMs = 120_000

type Advisory = { readonly name: string; readonly severity: string; readonly via: readonly unknown[] }
type Report = {
  readonly vulnerabilities?: Readonly<Record<string, Advisory>>
  /** In place of the above, when the registry has no answer. */
  readonly message?: string
  readonly error?: { readonly summary?: string }
}

const { stdout, error } = spawnSync(
  'npm',
  ['audit', '--json', '--fetch-retries=1', '--fetch-timeout=30000'],
  {
    cwd: folder,
    encoding: 'utf8',
    timeout: timeoutMs,
  },
)
const report = readReport(stdout)

if (report.vulnerabilities === undefined) {
  const why = report.message ?? report.error?.summary ?? error?.message ?? 'npm gave no report'
  console.log(`audit: not done, the registry has no answer: ${why}`)
} else {
  const found = Object.values(report.vulnerabilities)
  const grave = found.filter(({ severity }) => severity === 'high' || severity === 'critical')
  for (const { name, severity, via } of found)
    console.log(`audit: ${severity}: ${name}: ${via.map(titleOf).join('; ')}`)
  console.log(
    `audit: ${found.length} packages with known vulnerabilities, ${grave.length} of them high or critical`,
  )
  if (grave.length > 0) process.exitCode = 1
}

function readReport(text: string): Report {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- npm's own report
    return JSON.parse(text) as Report
  } catch {
    return {}
  }
}

/** An advisory, or the name of the package that has one. */
function titleOf(via: unknown): string {
  if (typeof via !== 'object' || via === null) return `by ${String(via)}`
  return [titleIn(via, 'title'), titleIn(via, 'url')].filter((text) => text !== '').join(' ')
}

function titleIn(via: object, key: 'title' | 'url'): string {
  const value: unknown = Object.getOwnPropertyDescriptor(via, key)?.value
  return typeof value === 'string' ? value : ''
}
