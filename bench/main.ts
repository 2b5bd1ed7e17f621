import { parseArgs } from 'node:util'
import { type AudienceSettings, runAudienceBenchmark } from './audience/benchmark.ts'
import { runBatchesBenchmark } from './batches/benchmark.ts'
import { type BurstSettings, runBurstBenchmark } from './burst/benchmark.ts'
import { type CatalogSettings, runCatalogBenchmark } from './catalog/benchmark.ts'
import { runConditionsBenchmark } from './conditions/benchmark.ts'
import { runConnectionsBenchmark } from './connections/benchmark.ts'
import { runConsoleBenchmark } from './console/benchmark.ts'
import { runDestinationsBenchmark } from './destinations/benchmark.ts'
import { runFloodBenchmark } from './flood/benchmark.ts'
import { runGatewayBenchmark } from './gateway/benchmark.ts'
import { type GroupSettings, runGroupBenchmark } from './group/benchmark.ts'
import { runIdleBenchmark } from './idle/benchmark.ts'
import { runIsolationBenchmark } from './isolation/benchmark.ts'
import { type LogSettings, runLogBenchmark } from './log/benchmark.ts'
import { type ParkedSettings, runParkedBenchmark } from './parked/benchmark.ts'
import { runPeersBenchmark } from './peers/benchmark.ts'
import { runRefusalsBenchmark } from './refusals/benchmark.ts'
import { runScalingBenchmark } from './scaling/benchmark.ts'
import { runSickBenchmark, type SickSettings } from './sick/benchmark.ts'
import { runSoakBenchmark, type SoakSettings } from './soak/benchmark.ts'
import { runStartBenchmark } from './start/benchmark.ts'
import { BenchmarkFailure } from './support/failure.ts'
import type { BenchmarkResult, Settings } from './support/settings.ts'
import { runWorkerBenchmark } from './worker/benchmark.ts'

/**
 * Runs one benchmark (`npm run bench -- NAME`). Progress goes to standard error, the result to standard
 * output.
 */

type Benchmark = {
  about: string
  run(
    settings: Settings &
      AudienceSettings &
      BurstSettings &
      CatalogSettings &
      GroupSettings &
      LogSettings &
      ParkedSettings &
      SickSettings &
      SoakSettings,
  ): Promise<BenchmarkResult>
}

const benchmarks = new Map<string, Benchmark>([
  [
    'worker',
    {
      about: 'a preloaded topic to one receiver: the worker, a bare undici dispatch loop and a kafkajs floor',
      run: runWorkerBenchmark,
    },
  ],
  [
    'batches',
    {
      about:
        'batches of 100 and single posts: what a message costs, also to a receiver 20 ms away, and how long it waits',
      run: runBatchesBenchmark,
    },
  ],
  [
    'peers',
    {
      about:
        'the worker beside programs of franz-go and parallel-consumer, and what each keeps beside a dead destination',
      run: runPeersBenchmark,
    },
  ],
  [
    'gateway',
    {
      about:
        'batches by HTTP until Kafka has acknowledged them: the gateway, and a Fastify route that drops them',
      run: runGatewayBenchmark,
    },
  ],
  [
    'refusals',
    {
      about:
        'what the most expensive requests and messages cost, and a flood of refused requests the p99 of the others',
      run: runRefusalsBenchmark,
    },
  ],
  [
    'group',
    {
      about: 'what a consumer group costs as it grows, and how long units that stay stop at a join',
      run: runGroupBenchmark,
    },
  ],
  [
    'scaling',
    {
      about:
        'pods over an hour of a load that rises tenfold and falls, by what they are asked for by: simulated',
      run: runScalingBenchmark,
    },
  ],
  [
    'start',
    {
      about: 'how long --help and a worker take until they are up, and the memory of a worker',
      run: runStartBenchmark,
    },
  ],
  [
    'conditions',
    {
      about: 'what a message costs that 50 of 100 destinations have a condition for',
      run: runConditionsBenchmark,
    },
  ],
  ['idle', { about: 'CPU of a worker that has nothing to do', run: runIdleBenchmark }],
  [
    'isolation',
    {
      about: 'what a dead and a slow destination cost 98 others, at half of the capacity',
      run: runIsolationBenchmark,
    },
  ],
  [
    'flood',
    {
      about:
        'what a destination that gets ten times what it takes costs 99 others, and that all is delivered',
      run: runFloodBenchmark,
    },
  ],
  [
    'burst',
    {
      about: 'bursts that a destination can not take at once: how long they wait, and what waiting costs',
      run: runBurstBenchmark,
    },
  ],
  [
    'destinations',
    { about: 'CPU a delivery with 10,000 destinations and with 10', run: runDestinationsBenchmark },
  ],
  [
    'catalog',
    {
      about: 'the catalog in its topic: loading it, a change of one destination, a burst of changes',
      run: runCatalogBenchmark,
    },
  ],
  [
    'console',
    {
      about:
        'the console: its bytes, its first paint with many destinations, its calls idle and beside half load, and what 200 live views cost',
      run: runConsoleBenchmark,
    },
  ],
  [
    'connections',
    {
      about: 'what opening a connection costs, with TLS sessions resumed and not, and a delivery over HTTP/2',
      run: runConnectionsBenchmark,
    },
  ],
  [
    'sick',
    {
      about: 'what hooks that fail or never answer get of their messages in four hours of a virtual clock',
      run: runSickBenchmark,
    },
  ],
  [
    'soak',
    { about: 'memory of a worker under a steady load with faults all the time', run: runSoakBenchmark },
  ],
  [
    'parked',
    {
      about: 'how late the records of one retry topic come out, and what they cost while they wait',
      run: runParkedBenchmark,
    },
  ],
  [
    'audience',
    {
      about: 'an audience created, changed, restored and compared: what a member costs, and the memory',
      run: runAudienceBenchmark,
    },
  ],
  [
    'log',
    {
      about: 'the index of the delivery log: rows a second, bytes a row, queries, expiry, memory',
      run: runLogBenchmark,
    },
  ],
])

const usage = [
  'usage: npm run bench -- NAME [--runs N] [--json] [options]',
  '',
  ...[...benchmarks].map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`),
  '',
  '  --runs N          how often each side is measured, by turns; the medians count (default 3, isolation 5)',
  '  --json            the last line of the output is one JSON object',
  '  --profile DIR     writes CPU profiles of Sluice to DIR, which slows it down;',
  '                    node bench/profile.ts FILE shows where the time went',
  '  --messages N      worker: how many messages a run delivers (default 400000; with --processes there is one run, of',
  '                    600000 for each process);',
  '                    gateway, peers: how many each side gets in a run (default 400000);',
  '                    batches: how many each side gets in a run (default 200000);',
  '                    isolation, console: how many the capacity is measured with (default 80000);',
  '                    burst: how many wait, in the rows resume, million, lanes and recall (default 200000, 1000000, 1000000,',
  '                    100000)',
  '  --only NAME,…      burst: these rows alone (such as rate_drain_ratio, learned, resume, million, lanes, recall);',
  '                    catalog: these parts alone (load, live, alone, import, traffic); a wrong name lists all',
  '  --processes N     worker: also measures a worker, and undici alone, in N processes',
  '  --seconds N       isolation, flood, destinations, gateway (single calls), peers, idle, refusals: how long a run is',
  '                    measured (default 60, 60, 30, 30, 30, 20, 12)',
  '  --rate N          messages a second. isolation: the capacity, instead of measuring it; flood: to the others',
  '                    (default 1000); destinations, peers, start: to all (default 2000);',
  '                    soak: to all (default 300); parked: how many come due (default 1000);',
  '                    refusals: requests of the flood (default 1000);',
  '                    sick: to each hook, for the scenes of that rate alone (5, 50, 500)',
  '  --minutes N       soak: how long it is (default 20); sick: how long messages come (default 240, 20, 2, 8)',
  '  --records N       parked: how many wait (default 500000)',
  '  --rows N          log: how many states are indexed (default 5000000)',
  '  --clickhouse      log: the same in ClickHouse as well: at CLICKHOUSE_URL, else its engine, which npm install --no-save --prefix test/clients/chdb installs',
  '  --members N       audience: how many (default 1000000); group: in that size alone (1, 10, 50)',
  '  --units N         group: in that size alone (12, 200, 1000)',
  '  --destinations N  destinations: how many the many are (default 10000)',
  '  --tls             worker, isolation, destinations: the receivers speak TLS 1.3, with certificates of an authority of their own',
  '  --log             worker: also measures one without the delivery log, and one that keeps answers and has the source of notices',
  '  --keep-cap        flood: the cap stays after the flood, so that delivering all takes ten times as long',
].join('\n')

const { values, positionals } = readArguments()
const benchmark = benchmarks.get(positionals[0] ?? '')
if (benchmark === undefined || positionals.length > 1) {
  const wrong = positionals.length === 0 ? '' : `There is no benchmark ${positionals.join(' ')}\n\n`
  endWith(wrong + usage, 2)
}

// Listeners of `exit` end the child processes of a benchmark. A signal alone doesn't call these listeners.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  const { table, figures } = await benchmark.run({
    ...counts([
      'runs',
      'messages',
      'seconds',
      'minutes',
      'records',
      'members',
      'units',
      'rate',
      'destinations',
      'processes',
      'rows',
    ]),
    keepCap: values['keep-cap'],
    tls: values.tls,
    log: values.log,
    clickhouse: values.clickhouse,
    only: values.only,
    ...(values.profile !== undefined && { profileDir: values.profile }),
  })
  if (!values.json) console.log(table)
  else {
    console.error(table)
    console.log(JSON.stringify(figures))
  }
  // Parts of Sluice that were measured without their process may have timers that are never cleared.
  process.exit()
} catch (error) {
  if (!(error instanceof BenchmarkFailure)) throw error
  endWith(`FAILED: ${error.message}`, 1)
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        runs: { type: 'string' },
        messages: { type: 'string' },
        seconds: { type: 'string' },
        minutes: { type: 'string' },
        records: { type: 'string' },
        members: { type: 'string' },
        units: { type: 'string' },
        rate: { type: 'string' },
        destinations: { type: 'string' },
        processes: { type: 'string' },
        rows: { type: 'string' },
        tls: { type: 'boolean', default: false },
        log: { type: 'boolean', default: false },
        'keep-cap': { type: 'boolean', default: false },
        clickhouse: { type: 'boolean', default: false },
        only: { type: 'string' },
        json: { type: 'boolean', default: false },
        profile: { type: 'string' },
      },
    })
  } catch (error) {
    endWith(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`, 2)
  }
}

type CountName =
  | 'runs'
  | 'messages'
  | 'seconds'
  | 'minutes'
  | 'records'
  | 'members'
  | 'rows'
  | 'units'
  | 'rate'
  | 'destinations'
  | 'processes'

function counts(names: readonly CountName[]): Partial<Record<CountName, number>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = values[name]
      return text === undefined ? [] : [[name, readCount(name, text)]]
    }),
  )
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
