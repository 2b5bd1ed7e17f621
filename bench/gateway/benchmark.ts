import { watchOthers } from '../support/machine-cpu.ts'
import { messageBytes } from '../support/messages.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import { type Clients, type Command, type Sent, startClients } from './clients-process.ts'
import { openSetting, type ServerName, type Setting } from './setting.ts'

const batchMessages = 100
const connections = 16
/**
 * The batches that warm a server up, as a share of the batches that are measured. They are sent in
 * addition.
 */
const warmShare = 0.25
const singlesPerSecond = 1_000
/** How long single calls warm a server up, in seconds. After this time V8 has optimized the server's code. */
const singleWarmS = 10
/**
 * Limit on the p99 of the lateness of single calls: the time between a call's planned and its actual sending.
 * Above it, the clients are too slow for their rate, and the benchmark fails.
 */
const maxLateMs = 10

type Measured = { messagesPerS: number; cpuUs: number; othersShare: number }
type Latency = Sent & { cpuUs: number; othersShare: number }

/**
 * Measures what a message of a batch costs the gateway until Kafka has acknowledged it (acks of all
 * replicas). For comparison, measures what the same bodies cost a bare Fastify route that parses and drops
 * them. The two servers take turns in each run. Then measures the same for single calls at a fixed rate,
 * and their latency.
 */
export async function runGatewayBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, messages = 400_000, seconds = 30, profileDir } = settings
  const measured: Record<ServerName, Measured[]> = { bare: [], gateway: [] }
  const singles: Record<ServerName, Latency[]> = { bare: [], gateway: [] }
  const setting = await openSetting({ profileDir, report: say })
  const clients = startClients()
  try {
    for (let run = 1; run <= runs; run++) {
      for (const name of ['bare', 'gateway'] as const) {
        const one = await measureBatches(setting, clients, name, messages)
        measured[name].push(one)
        say(`run ${run}: ${name} ${describe(one)}`)
      }
      for (const name of ['bare', 'gateway'] as const) {
        const one = await measureSingles(setting, clients, name, seconds)
        singles[name].push(one)
        const { p50, p99 } = one.latencyMs
        say(
          `run ${run}: ${name} single calls ${one.cpuUs.toFixed(0)} µs of CPU, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
        )
      }
    }
  } finally {
    await clients.stop()
    await setting.close()
  }
  const medians = mediansOf(measured, singles)
  return {
    table: tableOf(medians, { runs, messages, seconds }),
    figures: {
      messages_per_s: Math.round(1_000_000 / medians.gatewayUs),
      cpu_us: round(medians.gatewayUs, 1),
      bare_cpu_us: round(medians.bareUs, 1),
      ratio: round(medians.gatewayUs / medians.bareUs, 2),
      wall_messages_per_s: Math.round(medians.gatewayPerS),
      bare_wall_messages_per_s: Math.round(medians.barePerS),
      single_p50_ms: round(medians.p50, 1),
      single_p99_ms: round(medians.p99, 1),
      single_max_ms: round(medians.max, 1),
      single_cpu_us: round(medians.singleUs, 0),
      bare_single_cpu_us: round(medians.bareSingleUs, 0),
      others_share: round(medians.othersShare, 2),
      single_per_s: singlesPerSecond,
      batch_messages: batchMessages,
      message_bytes: messageBytes,
      connections,
      runs,
      messages,
      node: process.version,
    },
  }
}

function mediansOf(
  measured: Record<ServerName, Measured[]>,
  singles: Record<ServerName, Latency[]>,
): Medians {
  const of = (name: ServerName, pick: (one: Measured) => number): number => median(measured[name].map(pick))
  return {
    bareUs: of('bare', ({ cpuUs }) => cpuUs),
    gatewayUs: of('gateway', ({ cpuUs }) => cpuUs),
    gatewayPerS: of('gateway', ({ messagesPerS }) => messagesPerS),
    barePerS: of('bare', ({ messagesPerS }) => messagesPerS),
    p50: median(singles.gateway.map(({ latencyMs }) => latencyMs.p50)),
    p99: median(singles.gateway.map(({ latencyMs }) => latencyMs.p99)),
    max: median(singles.gateway.map(({ latencyMs }) => latencyMs.max)),
    singleUs: median(singles.gateway.map(({ cpuUs }) => cpuUs)),
    bareSingleUs: median(singles.bare.map(({ cpuUs }) => cpuUs)),
    othersShare: median([...measured.gateway, ...singles.gateway].map(({ othersShare }) => othersShare)),
  }
}

const noShare = (): number => 0

async function measureBatches(
  setting: Setting,
  clients: Clients,
  name: ServerName,
  messages: number,
): Promise<Measured> {
  const writtenBefore = await setting.written()
  const requests = Math.ceil(messages / batchMessages)
  const warmRequests = Math.ceil(requests * warmShare)
  const of = { kind: 'batches', connections, messages: batchMessages } as const
  const { cpuUs, tookMs, othersShare } = await measureWarm({ setting, clients, name }, (origin) => ({
    warm: { ...of, origin, requests: warmRequests },
    measured: { ...of, origin, requests },
  }))
  const expected = name === 'gateway' ? (warmRequests + requests) * batchMessages : 0
  const written = (await setting.written()) - writtenBefore
  if (written !== expected)
    throw new BenchmarkFailure(`${name}: ${expected} messages, and ${written} records`)
  const count = requests * batchMessages
  return { messagesPerS: (count / tookMs) * 1_000, cpuUs: cpuUs / count, othersShare }
}

async function measureSingles(
  setting: Setting,
  clients: Clients,
  name: ServerName,
  seconds: number,
): Promise<Latency> {
  const of = { kind: 'singles', perSecond: singlesPerSecond, warmS: 0, connections: 64 } as const
  const { sent, cpuUs, othersShare } = await measureWarm({ setting, clients, name }, (origin) => ({
    warm: { ...of, origin, seconds: singleWarmS },
    measured: { ...of, origin, seconds },
  }))
  if (sent.lateP99Ms > maxLateMs) {
    throw new BenchmarkFailure(
      `the clients could not keep their rate: p99 ${sent.lateP99Ms.toFixed(1)} ms late`,
    )
  }
  return { ...sent, cpuUs: cpuUs / (singlesPerSecond * seconds), othersShare }
}

/**
 * Starts a new server. The clients warm the server up with the command `warm`, and the measurement runs
 * while they carry out the command `measured`.
 */
async function measureWarm(
  { setting, clients, name }: { setting: Setting; clients: Clients; name: ServerName },
  commandsTo: (origin: string) => { warm: Command; measured: Command },
): Promise<{ sent: Sent; cpuUs: number; tookMs: number; othersShare: number }> {
  const server = await setting.start(name)
  const { warm, measured } = commandsTo(server.origin)
  const { failed: failedBefore } = await clients.run(warm, () => {})
  let startMs = 0
  let beforeUs = 0
  let othersShare = noShare
  const sent = await clients.run(measured, () => {
    startMs = performance.now()
    beforeUs = server.cpuUs()
    othersShare = watchOthers()
  })
  const tookMs = performance.now() - startMs
  const cpuUs = server.cpuUs() - beforeUs
  const share = othersShare()
  await server.stop()
  const failed = failedBefore + sent.failed
  if (failed > 0) throw new BenchmarkFailure(`${name}: ${failed} answers to ${measured.kind} were not 200`)
  return { sent, cpuUs, tookMs, othersShare: share }
}

function describe({ messagesPerS, cpuUs, othersShare }: Measured): string {
  return `${Math.round(messagesPerS)}/s, ${cpuUs.toFixed(1)} µs of CPU a message (others used ${percent(othersShare)} of the machine)`
}

type Medians = {
  bareUs: number
  gatewayUs: number
  gatewayPerS: number
  barePerS: number
  p50: number
  p99: number
  max: number
  singleUs: number
  bareSingleUs: number
  othersShare: number
}

function tableOf(
  { bareUs, gatewayUs, gatewayPerS, barePerS, p50, p99, max, singleUs, bareSingleUs, othersShare }: Medians,
  { runs, messages, seconds }: { runs: number; messages: number; seconds: number },
): string {
  return [
    '',
    `${messages.toLocaleString('en')} messages of ${messageBytes} bytes, ${batchMessages} in a batch, ${connections} connections;`,
    `medians of ${runs} runs, Node ${process.version}; other programs used ${percent(othersShare)} of the machine`,
    '',
    rowOf('', ['CPU µs each', 'a core', 'messages/s']),
    rowOf('Fastify, parse and drop', [bareUs.toFixed(1), perCore(bareUs), whole(barePerS)]),
    rowOf('sluice gateway', [gatewayUs.toFixed(1), perCore(gatewayUs), whole(gatewayPerS)]),
    rowOf('gateway / Fastify', [(gatewayUs / bareUs).toFixed(2), '', '']),
    '',
    `single /v1/track, ${singlesPerSecond} a second for ${seconds} s:`,
    rowOf('', ['p50 ms', 'p99 ms', 'max ms', 'CPU µs each']),
    rowOf('Fastify, parse and drop', ['', '', '', bareSingleUs.toFixed(0)]),
    rowOf('sluice gateway', [p50.toFixed(1), p99.toFixed(1), max.toFixed(1), singleUs.toFixed(0)]),
  ].join('\n')
}

/** Returns how many messages a second one core can handle if a message costs `cpuUs`. */
function perCore(cpuUs: number): string {
  return whole(1_000_000 / cpuUs)
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}
