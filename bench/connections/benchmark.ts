import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import { createCertificates } from '../support/tls.ts'
import { inFlight, nodeH2, type Sending, sluice, undici } from './senders.ts'
import { type Counts, type Servers, type ServerName, startServers } from './server-process.ts'

/**
 * Measures what a new connection costs Sluice's sender. Some receivers close the connection after each
 * answer, others keep it. The connections use plain TCP, TLS 1.3 or TLS 1.2, with certificates of ECDSA
 * P-256. With TLS, some receivers resume sessions, and others can't. Also measures what a delivery costs over
 * HTTP/2, with undici's client and with Node's. Compares this cost with that of Sluice's sender and of undici
 * over HTTP/1.1. All of these use TLS.
 *
 * All senders run in this process and take turns within a run, so the state of the machine is the same for
 * all. The receivers run in another process.
 */
export async function runConnectionsBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, messages = 600 } = settings
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const certificates = createCertificates(folder)
  trust(certificates.variables['NODE_EXTRA_CA_CERTS'] ?? '')
  const servers = await startServers(certificates.fileFor(['127.0.0.1']))
  try {
    const sides = openSides(servers)
    const measured = await measure(sides, servers, { turns: runs * turnsOfRun, messages })
    for (const { sending } of sides) await sending.close()
    return resultOf(measured, { runs, messages })
  } finally {
    await servers.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const turnsOfRun = 12
/** The share of the turns that don't count. They are the first turns, in which code is compiled. */
const warmupShare = 1 / 4

function trust(authorityFile: string): void {
  setDefaultCACertificates([...getCACertificates(), readFileSync(authorityFile, 'utf8')])
}

type SideName = Exclude<ServerName, 'h2'> | 'undici h1' | 'undici h2' | 'node h2'
type Side = { name: SideName; server: ServerName; sending: Sending }

const sluiceSides = [
  'plain kept',
  'plain',
  'tls kept',
  'tls 1.3',
  'tls 1.3 full',
  'tls 1.2',
  'tls 1.2 full',
] as const

function openSides({ originOf }: Servers): Side[] {
  return [
    ...sluiceSides.map((name): Side => ({ name, server: name, sending: sluice(originOf(name)) })),
    { name: 'undici h1', server: 'tls kept', sending: undici(originOf('tls kept'), { isH2: false }) },
    { name: 'undici h2', server: 'h2', sending: undici(originOf('h2'), { isH2: true }) },
    { name: 'node h2', server: 'h2', sending: nodeH2(originOf('h2')) },
  ]
}

/**
 * The results of one sender. `cpuUs`: CPU time of this process for each delivery. `connectionsEach`:
 * connections for each delivery. `resumedShare`: the share of connections that resumed a TLS session, 0 to
 * 1.
 */
type Measured = { cpuUs: number; connectionsEach: number; resumedShare: number }

async function measure(
  sides: readonly Side[],
  servers: Servers,
  { turns, messages }: { turns: number; messages: number },
): Promise<ReadonlyMap<SideName, Measured>> {
  const cpuUs = new Map<SideName, number[]>(sides.map(({ name }) => [name, []]))
  const counted = new Map<SideName, Counts>(
    sides.map(({ name }) => [name, { requests: 0, connections: 0, resumed: 0 }]),
  )
  for (let turn = 0; turn < turns; turn++) {
    for (const { name, server, sending } of turn % 2 === 0 ? sides : sides.toReversed()) {
      const from = process.cpuUsage()
      await sending.deliver(messages)
      const { user, system } = process.cpuUsage(from)
      const counts = (await servers.counts())[server]
      if (counts.requests !== messages) {
        throw new BenchmarkFailure(`${name}: ${counts.requests} requests of ${messages} came`)
      }
      if (turn < turns * warmupShare) continue
      cpuUs.get(name)?.push((user + system) / messages)
      const sum = counted.get(name)
      if (sum === undefined) continue
      sum.requests += counts.requests
      sum.connections += counts.connections
      sum.resumed += counts.resumed
    }
    if ((turn + 1) % turnsOfRun === 0) say(`turn ${turn + 1} of ${turns}`)
  }
  return new Map(
    sides.map(({ name }) => {
      const { requests, connections, resumed } = counted.get(name) ?? {
        requests: 1,
        connections: 0,
        resumed: 0,
      }
      const resumedShare = connections === 0 ? 0 : resumed / connections
      return [
        name,
        { cpuUs: median(cpuUs.get(name) ?? []), connectionsEach: connections / requests, resumedShare },
      ]
    }),
  )
}

function resultOf(
  measured: ReadonlyMap<SideName, Measured>,
  { runs, messages }: { runs: number; messages: number },
): BenchmarkResult {
  const of = (name: SideName): Measured => {
    const found = measured.get(name)
    if (found === undefined) throw new BenchmarkFailure(`${name} was not measured`)
    return found
  }
  const connectionUs = (name: SideName): number => {
    const kept = of(name.startsWith('plain') ? 'plain kept' : 'tls kept')
    return (of(name).cpuUs - kept.cpuUs) / of(name).connectionsEach
  }
  const opened = sluiceSides.filter((name) => !name.endsWith('kept'))
  const figures = {
    connection_cpu_us: Object.fromEntries(opened.map((name) => [name, round(connectionUs(name), 0)])),
    resumed_share: {
      'tls 1.3': round(of('tls 1.3').resumedShare, 3),
      'tls 1.2': round(of('tls 1.2').resumedShare, 3),
    },
    delivery_cpu_us: Object.fromEntries([...measured].map(([name, { cpuUs }]) => [name, round(cpuUs, 1)])),
    undici_h2_ratio: round(of('undici h2').cpuUs / of('tls kept').cpuUs, 2),
    node_h2_ratio: round(of('node h2').cpuUs / of('tls kept').cpuUs, 2),
    undici_h1_ratio: round(of('undici h1').cpuUs / of('tls kept').cpuUs, 2),
    runs,
    messages,
    in_flight: inFlight,
    node: process.version,
  }
  const row = (name: SideName): string => {
    const { cpuUs, connectionsEach, resumedShare } = of(name)
    const isOpened = opened.some((one) => one === name)
    return rowOf(name, [
      cpuUs.toFixed(1),
      connectionsEach.toFixed(3),
      isOpened && name !== 'plain' ? percent(resumedShare) : '-',
      isOpened ? connectionUs(name).toFixed(0) : '-',
    ])
  }
  const table = [
    '',
    `medians of turns of ${messages} deliveries, ${inFlight} in flight, Node ${process.version}`,
    '',
    rowOf('', ['CPU µs each', 'connects each', 'resumed', 'µs a connect']),
    ...[...measured.keys()].map(row),
  ].join('\n')
  return { table, figures }
}
