import { type Clients, type Sent, startClients } from '../gateway/clients-process.ts'
import { openSetting, type Server } from '../gateway/setting.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { watchOthers } from '../support/machine-cpu.ts'
import { cpuUsOf } from '../support/process-family.ts'
import { measureInQuiet, Patience, type Tried } from '../support/quiet.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { percent } from '../support/table.ts'
import { worstMessages, worstRequests } from './costs.ts'
import { type Flood, type Flooded, startFlood } from './flood-process.ts'
import { type FloodKind, type FloodName, floodNames, floodsOf, planOf, type SideName } from './floods.ts'
import { costsAtGateway } from './gateway-cost.ts'
import type { HostileRequest } from './hostile-requests.ts'
import { resultOf, type WorstCosts } from './result.ts'
import type { Side, Round } from './side.ts'

/**
 * First finds the requests of 2 KB and the messages of 32 KB that cost the most, among those that are known to
 * be expensive and by a search. Measures the worst requests at a real gateway.
 *
 * Then measures what a flood of refused requests costs the other clients of a gateway. A separate process, the
 * prober, makes single calls of another source at a fixed rate. A round consists of one run without a flood,
 * and one run with each flood. Every second round has the runs in reverse order. Each run with a flood makes
 * a pair with the run without a flood of the same round. The floods send at a given rate and don't wait for
 * answers. A flood that sends as fast as it is answered would use the whole machine, which it shares with the
 * gateway. It would do so even if a refusal cost the gateway nothing. The last two floods are the worst requests
 * that are known, 20 a second.
 */
export async function runRefusalsBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, seconds = 12, rate = 1_000, profileDir } = settings
  say('looking for the most expensive requests and messages')
  const found = worstRequests(searched)
  const messages = worstMessages(searched)
  const setting = await openSetting({ profileDir, report: say, sources, variables })
  const clients = startClients()
  const flood = startFlood()
  try {
    const server = await setting.start('gateway')
    const requests = await costsAtGateway(server, unlike(found.map(({ of }) => of)))
    const worst: WorstCosts = { requests, messages }
    const floods = floodsOf(requests.slice(0, hostileKinds).map(({ of }) => of))
    const stand = { server, clients, flood, rate, floods }
    say('warming up')
    for (const name of floodNames) await measure(stand, name, warmupS)
    const rounds: Round[] = []
    const patience = new Patience(patienceMs)
    for (let round = 1; round <= runs; round++) {
      const order = round % 2 === 1 ? sideNames : sideNames.toReversed()
      const sides = new Map<SideName, Side>()
      for (const name of order) {
        const side = await measureOnTime(stand, name, { seconds, patience })
        sides.set(name, side)
        say(`round ${round}: ${describe(name, side)}`)
      }
      rounds.push(sides)
    }
    await server.stop()
    return resultOf(rounds, worst, { rate, seconds, connections, probesPerS })
  } finally {
    await flood.stop()
    await clients.stop()
    await setting.close()
  }
}

const sideNames: readonly SideName[] = ['no flood', ...floodNames]

const sources = [
  { id: 'shop', writeKeys: ['bench-write-key'] },
  { id: 'limited', writeKeys: ['limited-write-key'], maxPerSecond: 1 },
]
/** Each request of a flood comes from the address in this header. */
const variables = { SLUICE_GATEWAY_TRUSTED_PROXIES: '127.0.0.1/32' }
/** How many random kinds of requests, and of messages, are tried. */
const searched = 300
/** How many of the worst kinds of requests a flood has. */
const hostileKinds = 4
const connections = 20
const probesPerS = 200
const warmupS = 3
const leadS = 1
/**
 * The largest p99 of the prober's lateness. A prober that is later doesn't make its calls at the given rate.
 */
const maxLateMs = 10
const tries = 4
/** How long the benchmark waits for quiet and repeats runs, over all runs, in milliseconds. */
const patienceMs = 60_000
/** The least share of its rate that a flood must reach. */
const leastShare = 0.95
/**
 * The largest share of a flood that may be accepted. A source over its rate may still send a few messages.
 */
const mostTaken = 0.01

const noShare = (): number => 0

type Stand = {
  server: Server
  clients: Clients
  flood: Flood
  rate: number
  floods: Readonly<Record<FloodName, FloodKind>>
}

async function measure(stand: Stand, name: SideName, seconds: number): Promise<Tried<Side>> {
  const { server, clients, flood, rate, floods } = stand
  const kind = name === 'no flood' ? undefined : floods[name]
  const plan = kind && planOf(kind, { origin: server.origin, perSecond: rate, connections })
  if (plan !== undefined) await flood.begin(plan)
  let before = cpuOf(stand)
  let othersShare = noShare
  const sent = await clients.run(
    {
      kind: 'singles',
      origin: server.origin,
      perSecond: probesPerS,
      seconds: seconds + leadS,
      warmS: leadS,
      connections: 64,
    },
    () => {
      before = cpuOf(stand)
      othersShare = watchOthers()
    },
  )
  const cpu = sharesBetween(before, cpuOf(stand))
  const used = othersShare()
  const flooded = plan === undefined ? undefined : await flood.end()
  const { latencyMs: latency, lateP99Ms } = sent
  const fault = faultOf(name, sent, flooded, { perSecond: plan?.perSecond ?? 0, kind })
  return { latency, lateP99Ms, cpu, othersShare: used, flooded, fault }
}

/**
 * Measures a run, and repeats it if the prober was late. Even a short burst of other programs, which is a
 * small share of the run, can decide a p99.
 */
async function measureOnTime(
  stand: Stand,
  name: SideName,
  { seconds, patience }: { seconds: number; patience: Patience },
): Promise<Side> {
  for (let attempt = 1; ; attempt++) {
    const side = await measureInQuiet(() => measure(stand, name, seconds), patience)
    if (side.lateP99Ms <= maxLateMs) return side
    const problem = `${name}: the others were sent late, p99 ${side.lateP99Ms.toFixed(1)} ms`
    if (patience.isOver) {
      say(`${problem}, because other programs use the machine`)
      return side
    }
    if (attempt === tries) throw new BenchmarkFailure(`${problem}, in each of ${tries} runs`)
    say(`${problem}: this run is made again`)
  }
}

/** Returns the reason why the figures of a run can't be used, or `undefined`. */
function faultOf(
  name: SideName,
  sent: Sent,
  flooded: Flooded | undefined,
  { perSecond: rate, kind }: { perSecond: number; kind: FloodKind | undefined },
): string | undefined {
  if (sent.failed > 0) return `${name}: ${sent.failed} answers to the others were not 200`
  if (kind === undefined || flooded === undefined) return undefined
  const { statuses, perS } = flooded
  const all = Object.values(statuses).reduce((sum, count) => sum + count, 0)
  const refused = kind.statuses.reduce((sum, status) => sum + (statuses[status] ?? 0), 0)
  if (refused < all * (1 - mostTaken)) {
    return `${name}: not refused as it has to be: ${JSON.stringify(statuses)}`
  }
  return perS < rate * leastShare
    ? `${name}: ${Math.round(perS)} of ${rate} requests a second were answered`
    : undefined
}

/** Leaves out requests that only differ from a worse one in a random combination of its pieces. */
function unlike(requests: readonly HostileRequest[]): readonly HostileRequest[] {
  return requests.filter(({ name }, index) => requests.findIndex((one) => one.name === name) === index)
}

type CpuUs = { atMs: number; gateway: number; prober: number; flood: number; all: number }

function cpuOf({ server, clients, flood }: Stand): CpuUs {
  return {
    atMs: performance.now(),
    gateway: server.cpuUs(),
    prober: cpuUsOf(clients.pid),
    flood: cpuUsOf(flood.pid),
    all: cpuUsOf(process.pid),
  }
}

/**
 * Returns the shares of one core. The rest is the benchmark itself, and Kafka if the benchmark has started
 * it.
 */
function sharesBetween(from: CpuUs, to: CpuUs): Side['cpu'] {
  const spanUs = (to.atMs - from.atMs) * 1_000
  const gateway = (to.gateway - from.gateway) / spanUs
  const prober = (to.prober - from.prober) / spanUs
  const flood = (to.flood - from.flood) / spanUs
  return { gateway, prober, flood, rest: (to.all - from.all) / spanUs - gateway - prober - flood }
}

function describe(name: SideName, { latency, cpu, othersShare }: Side): string {
  const { p50, p99, max } = latency
  const shares = `gateway ${percent(cpu.gateway)}, prober ${percent(cpu.prober)}, flood ${percent(cpu.flood)}, Kafka ${percent(cpu.rest)} of a core`
  return `${name}: p50 ${p50.toFixed(2)} p99 ${p99.toFixed(2)} max ${max.toFixed(1)} ms; ${shares}; others ${percent(othersShare)} of the machine`
}
