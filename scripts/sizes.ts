import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The rules of oxlint that measure sizes. */
export const sizeRules = ['max-lines', 'max-lines-per-function', 'max-params'] as const
export type SizeRule = (typeof sizeRules)[number]

/** The limit of each rule: lines of a file, lines of a function, parameters of a function. */
export type SizeLimits = Readonly<Record<SizeRule, number>>

/** A place that is over its limit. `size` is the measured size, in the unit of the rule. */
export type OverLimit = { readonly file: string; readonly rule: SizeRule; readonly size: number }

const run = promisify(execFile)
const maxOutputBytes = 64 * 1024 ** 2

/**
 * Measures files and functions with oxlint, and resolves to the places that are over `limits`. Paths are
 * relative to `root`. Rejects if oxlint fails, or if its output has an unknown form.
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
    // oxlint ends with exit code 1 if a place is over its limit. Its output then lists these places.
    if (error instanceof Error && 'stdout' in error && error.stdout !== '') return String(error.stdout)
    throw error
  }
}

/** Reads the output of `oxlint --format json`. Throws on a diagnostic without a measured size. */
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

/** Returns a configuration of oxlint that checks only the `limits`. */
function sizeConfig(limits: SizeLimits): object {
  return {
    categories: { correctness: 'off' },
    rules: Object.fromEntries(sizeRules.map((rule) => [rule, ['error', { max: limits[rule] }]])),
    ignorePatterns: ['node_modules', 'dist'],
  }
}
