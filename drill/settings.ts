import { parseArgs } from 'node:util'

export type DrillSettings = {
  minutes: number
  seed: number
  /** The number of events a second. */
  rate: number
  /** If true, the last line of the output is one JSON object. */
  isJson: boolean
  reportFile: string
}

export const usage = [
  'usage: npm run drill -- [--minutes N] [--seed N] [--rate N] [--report FILE] [--json]',
  '',
  '  --minutes N    how long faults go on (default 10; from 1 on, halves too)',
  '  --seed N       the same seed makes the same faults at the same times (default: another one each time)',
  '  --rate N       events a second (default 30)',
  '  --report FILE  where the report goes (default .sluice/drill.html)',
  '  --json         the last line of the output is one JSON object',
  '',
  'Ends with 0 when every promise was kept, with 1 when one was broken, with 2 when it was called in a wrong way.',
].join('\n')

/** Returns the settings of a command line. Throws an error that names the wrong argument. */
export function readSettings(args: readonly string[], newSeed: () => number): DrillSettings {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string' },
      rate: { type: 'string', default: '30' },
      report: { type: 'string', default: '.sluice/drill.html' },
      json: { type: 'boolean', default: false },
    },
  })
  return {
    minutes: numberOf('minutes', values.minutes, (minutes) => minutes >= 1 && minutes <= 24 * 60),
    seed:
      values.seed === undefined
        ? newSeed()
        : numberOf('seed', values.seed, (seed) => Number.isSafeInteger(seed)),
    rate: numberOf('rate', values.rate, (rate) => rate >= 6 && rate <= 10_000),
    isJson: values.json,
    reportFile: values.report,
  }
}

function numberOf(name: string, text: string, isFit: (value: number) => boolean): number {
  const value = Number(text)
  if (text.trim() === '' || !isFit(value)) throw new Error(`--${name} can't be ${text}`)
  return value
}
