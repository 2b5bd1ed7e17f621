import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Rules of oxlint that measure something. */
export const sizeRules = ['max-lines', 'max-lines-per-function', 'max-params'] as const
export type SizeRule = (typeof sizeRules)[number]

/** The most that each rule allows: lines of a file, lines of a function, parameters of a function. */
export type SizeLimits = Readonly<Record<SizeRule, number>>

/** A place that is over its limit. `size` is what was measured, in the unit of the rule. */
export type OverLimit = { readonly file: string; readonly rule: SizeRule; readonly size: number }

const run = promisify(execFile)
const maxOutputBytes = 64 * 1024 ** 2

/**
 * Measures files and functions with oxlint, and resolves to all that are over `limits`. Paths are relative to
 * `root`. Rejects when oxlint fails, or answers in a form that this doesn't know.
 */
export async function measureSizes(
  root: string,
  limits: SizeLimits,
  paths: readonly string[],
): Promise<OverLimit[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sizes-'))
  try {
    const config = join(folder, 'oxlint.json')
    writeFileSync(config, JSON.stringify(sizeConfig(limits)))
    return readSizes(await runOxlint(root, ['--config', config, '--format', 'json', ...paths]))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function runOxlint(root: string, flags: readonly string[]): Promise<string> {
  const oxlint = join(root, 'node_modules/.bin/oxlint')
  try {
    return (await run(oxlint, flags, { cwd: root, maxBuffer: maxOutputBytes })).stdout
  } catch (error) {
    // Exit code 1 says that something is over a limit.
    if (error instanceof Error && 'stdout' in error && error.stdout !== '') return String(error.stdout)
    throw error
  }
}

/** Reads what oxlint prints with `--format json`. Throws on a diagnostic without a measured size. */
export function readSizes(output: string): OverLimit[] {
  const report: unknown = JSON.parse(output)
  if (!hasDiagnostics(report)) throw new Error('oxlint printed no list of diagnostics')
  return report.diagnostics.map(({ code, filename, message }) => {
    const rule = sizeRules.find((name) => code === `eslint(${name})`)
    const size = Number(/\((\d+)\)/.exec(message)?.[1])
    if (rule === undefined || Number.isNaN(size))
      throw new Error(`oxlint reports what can't be read here: ${code} ${message}`)
    return { file: filename, rule, size }
  })
}

type Report = { diagnostics: { code: string; filename: string; message: string }[] }

function hasDiagnostics(value: unknown): value is Report {
  return (
    typeof value === 'object' && value !== null && 'diagnostics' in value && Array.isArray(value.diagnostics)
  )
}

/** The configuration of oxlint that measures against `limits` and does nothing else. */
function sizeConfig(limits: SizeLimits): object {
  return {
    categories: { correctness: 'off' },
    rules: Object.fromEntries(sizeRules.map((rule) => [rule, ['error', { max: limits[rule] }]])),
    ignorePatterns: ['node_modules', 'dist'],
  }
}
