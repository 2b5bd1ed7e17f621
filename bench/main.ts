import { parseArgs } from 'node:util'
import { BenchmarkFailure } from './support/failure.ts'
import { runWorkerBenchmark } from './worker/benchmark.ts'

/** `npm run bench -- NAME`: runs one benchmark. Progress goes to standard error, the result to standard output. */

/** What every benchmark is told. */
type Settings = { runs: number; messages: number; profileDir: string | undefined }

/** A result as a table for people, and as plain data. */
type Result = { table: string; figures: object }

type Benchmark = { about: string; run(settings: Settings): Promise<Result> }

const benchmarks = new Map<string, Benchmark>([
  [
    'worker',
    {
      about: 'a preloaded topic to one receiver: the worker, a bare undici dispatch loop and a kafkajs floor',
      run: runWorkerBenchmark,
    },
  ],
])

const usage = [
  'usage: npm run bench -- NAME [--runs N] [--messages N] [--json] [--profile DIR]',
  '',
  ...[...benchmarks].map(([name, { about }]) => `  ${name.padEnd(10)} ${about}`),
  '',
  '  --runs N       how often each side is measured; the medians count (default 3)',
  '  --messages N   how many messages a run delivers (default 200000)',
  '  --json         the last line of the output is one JSON object',
  '  --profile DIR  writes a CPU profile of Sluice to DIR for each run, which slows it down;',
  '                 node bench/profile.ts FILE shows where the time went',
].join('\n')

const { values, positionals } = readArguments()
const benchmark = benchmarks.get(positionals[0] ?? '')
if (benchmark === undefined || positionals.length > 1) endWith(usage, 2)

// The children of a benchmark are ended by `exit` listeners, which a signal alone would not call.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  const { table, figures } = await benchmark.run({
    runs: readCount('runs', values.runs),
    messages: readCount('messages', values.messages),
    profileDir: values.profile,
  })
  if (!values.json) console.log(table)
  else {
    console.error(table)
    console.log(JSON.stringify(figures))
  }
} catch (error) {
  if (!(error instanceof BenchmarkFailure)) throw error
  endWith(`FAILED: ${error.message}`, 1)
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        runs: { type: 'string', default: '3' },
        messages: { type: 'string', default: '200000' },
        json: { type: 'boolean', default: false },
        profile: { type: 'string' },
      },
    })
  } catch (error) {
    endWith(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`, 2)
  }
}

function readCount(name: string, text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  endWith(`--${name} must be a whole number above 0\n\n${usage}`, 2)
}

function endWith(message: string, code: number): never {
  console.error(message)
  process.exit(code)
}
