import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'

/**
 * `npm run audit`: asks the registry for known vulnerabilities of the packages in the lock file. Fails if one
 * of them is high or critical. It doesn't fail if the registry can't be reached or has no endpoint for
 * audits, as some mirrors. It then prints that the audit was not done, and a later run with another registry
 * can do it. An argument is the folder of another project.
 */
const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '..'))
const timeoutMs = 120_000

type Advisory = { readonly name: string; readonly severity: string; readonly via: readonly unknown[] }
type Report = {
  readonly vulnerabilities?: Readonly<Record<string, Advisory>>
  /** The reason why there are no `vulnerabilities`, if the registry has no answer. */
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

/** Returns the title and URL of an advisory, or the name of the dependency that has the vulnerability. */
function titleOf(via: unknown): string {
  if (typeof via !== 'object' || via === null) return `by ${String(via)}`
  return [titleIn(via, 'title'), titleIn(via, 'url')].filter((text) => text !== '').join(' ')
}

function titleIn(via: object, key: 'title' | 'url'): string {
  const value: unknown = Object.getOwnPropertyDescriptor(via, key)?.value
  return typeof value === 'string' ? value : ''
}
