import { randomInt } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Figures, figuresOf } from './figures.ts'
import type { Check } from './oracle.ts'
import { reportOf } from './report/page.ts'
import { runDrill } from './run.ts'
import { type DrillSettings, readSettings, usage } from './settings.ts'

/** Runs `npm run drill`. Progress goes to standard error, and the result to standard output. */

const settings = settingsOrEnd()

// Listeners of `exit` and tethers end the processes that the drill has started. A signal alone doesn't call
// them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const drill = await runDrill(settings)
const reportFile = resolve(settings.reportFile)
mkdirSync(dirname(reportFile), { recursive: true })
writeFileSync(reportFile, reportOf(drill))
writeFileSync(`${reportFile}.log`, `${drill.log.join('\n')}\n`)
const figures = figuresOf(drill)
print(drill.verdict.checks, figures)
if (settings.isJson) console.log(JSON.stringify({ ...figures, report: reportFile }))
// Requests may still wait for an answer. Without this line, the process would wait for them.
process.exit(figures.passed ? 0 : 1)

function print(
  checks: readonly Check[],
  { sent, delivered, repeated, worker_kills, broker_kills, lost }: Figures,
): void {
  const tell = settings.isJson ? console.error : console.log
  tell('')
  for (const { promise, isKept, found, against } of checks) {
    tell(`${isKept ? 'ok  ' : 'NO  '}${promise}: ${found}`)
    for (const line of against) tell(`      ${line}`)
  }
  tell('')
  tell(
    `${figures.passed ? 'PASSED' : 'FAILED'} (seed ${settings.seed}): ${sent} events sent, ${delivered} delivered, ${lost} lost, ${repeated} more than once; ` +
      `${worker_kills} workers and ${broker_kills} brokers were killed`,
  )
  tell(`report: ${reportFile}; what the processes said: ${reportFile}.log`)
}

function settingsOrEnd(): DrillSettings {
  try {
    return readSettings(process.argv.slice(2), () => randomInt(1, 1_000_000))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}
