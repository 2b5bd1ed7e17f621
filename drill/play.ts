import { setTimeout as passTime } from 'node:timers/promises'
import type { ProxiedKafka } from '../test/support/proxied-kafka.ts'
import type { Proxy, Toxic } from '../test/support/toxiproxy.ts'
import { until } from '../test/support/until.ts'
import type { Installation } from './installation.ts'
import { type Fault, type Lane, lanes, type NetworkTrouble, type TimedFault } from './schedule.ts'

/**
 * A fault that has begun, with times in epoch milliseconds. The fault is over when the processes that it
 * ended are ready again, and the processes that it suspended run again. `toMs` is infinite until then.
 */
export type Happened = { lane: Lane; fault: Fault; fromMs: number; toMs: number }

export type Played = {
  happened: Happened[]
  /** Returns the descriptions of the faults that have begun since the last call. */
  tell(): string[]
  /**
   * Resolves when all faults are over. Rejects if a fault could not be carried out, or a process didn't
   * return.
   */
  ended: Promise<void>
}

/**
 * The lanes in which faults may overlap. Each fault of these lanes chooses from the workers that run when the
 * fault begins.
 */
const crowded: ReadonlySet<Lane> = new Set(['kills', 'group'])

/** Starts the faults of the schedule at their times. The time 0 of the schedule is the time of the call. */
export function playFaults(schedule: readonly TimedFault[], act: (fault: Fault) => Promise<void>): Played {
  const startedMs = performance.now()
  const happened: Happened[] = []
  let told: string[] = []
  const begin = async (lane: Lane, fault: Fault): Promise<void> => {
    const one: Happened = { lane, fault, fromMs: Date.now(), toMs: Infinity }
    happened.push(one)
    told.push(describeFault(fault))
    await act(fault)
    one.toMs = Date.now()
  }
  async function play(lane: Lane): Promise<void> {
    const begun: Promise<void>[] = []
    for (const { atMs, fault } of schedule.filter((timed) => timed.lane === lane)) {
      await passTime(Math.max(0, atMs - (performance.now() - startedMs)))
      const one = begin(lane, fault)
      // `ended` reports the error later. Without this handler, the rejection would end the process at once.
      one.catch(() => undefined)
      begun.push(one)
      if (!crowded.has(lane)) await one
    }
    await Promise.all(begun)
  }
  const ended = Promise.all(lanes.map(play)).then(() => undefined)
  ended.catch(() => undefined)
  return {
    happened,
    ended,
    tell() {
      const lines = told
      told = []
      return lines
    },
  }
}

/** Returns a short description of the fault. */
export function describeFault(fault: Fault): string {
  const { kind } = fault
  switch (kind) {
    case 'kill broker':
    case 'restart broker':
    case 'pause broker':
      return `${kind} ${fault.broker}`
    case 'trouble to Kafka':
      return `network to broker ${fault.broker} ${fault.trouble}`
    case 'trouble to an endpoint':
      return `network to an endpoint ${fault.trouble}`
    default:
      return kind
  }
}

const availableMs = 120_000

/** Returns a function that carries out a fault, and resolves when the fault is over. */
export function createActor({
  installation,
  kafka,
  endpointProxy,
}: {
  installation: Installation
  kafka: ProxiedKafka
  endpointProxy: Proxy
}): (fault: Fault) => Promise<void> {
  const { group, gateway } = installation
  const othersAwake = (): Promise<boolean> =>
    until('two workers are there', () => group.awake >= 2, { timeoutMs: availableMs, everyMs: 100 })
  return async (fault) => {
    const { kind, forMs } = fault
    switch (kind) {
      case 'kill worker':
        await othersAwake()
        await group.kill(fault.pick)
        await passTime(forMs)
        await group.join()
        return undefined
      case 'freeze worker':
        await othersAwake()
        group.freeze(fault.pick, forMs)
        return passTime(forMs)
      case 'pause worker':
        await othersAwake()
        group.pause(fault.pick, forMs)
        return passTime(forMs)
      case 'restart worker':
        await othersAwake()
        await group.leave(fault.pick)
        await passTime(forMs)
        await group.join()
        return undefined
      case 'add worker':
        await group.join()
        await passTime(forMs)
        await othersAwake()
        return group.leave(fault.pick)
      case 'kill broker':
      case 'restart broker': {
        const node = nodeOf(kafka, fault.broker)
        await node.kill(kind === 'kill broker' ? 'SIGKILL' : 'SIGTERM')
        await passTime(forMs)
        return node.start()
      }
      case 'pause broker': {
        const { pid } = nodeOf(kafka, fault.broker)
        if (pid === undefined) throw new Error(`broker ${fault.broker} does not run`)
        process.kill(pid, 'SIGSTOP')
        await passTime(forMs)
        process.kill(pid, 'SIGCONT')
        return undefined
      }
      case 'kill gateway':
        return gateway.kill(forMs)
      case 'restart gateway':
        return gateway.restart(forMs)
      case 'pause gateway':
        return gateway.pause(forMs)
      case 'trouble to Kafka':
        return troubled(kafka.proxyOf(fault.broker), fault.trouble, forMs)
      case 'trouble to an endpoint':
        return troubled(endpointProxy, fault.trouble, forMs)
      case 'pause destination':
      case 'edit destination':
      case 'retry now':
        return operate(installation, kind, forMs)
    }
  }
}

async function operate(
  installation: Installation,
  kind: 'pause destination' | 'edit destination' | 'retry now',
  forMs: number,
): Promise<void> {
  switch (kind) {
    case 'pause destination':
      installation.pauseDestination(true)
      await passTime(forMs)
      return installation.pauseDestination(false)
    case 'edit destination':
      return installation.editDestinations()
    case 'retry now':
      return installation.retryNow()
  }
}

function nodeOf({ nodes }: ProxiedKafka, broker: number) {
  const node = nodes.find(({ id }) => id === broker)
  if (node === undefined) throw new Error(`there is no broker ${broker}`)
  return node
}

async function troubled(proxy: Proxy, trouble: NetworkTrouble, forMs: number): Promise<void> {
  if (trouble === 'closed') await proxy.disable()
  else for (const toxic of toxicsOf(trouble)) await proxy.add(toxic)
  await passTime(forMs)
  await proxy.heal()
}

function toxicsOf(trouble: Exclude<NetworkTrouble, 'closed'>): Toxic[] {
  const streams = ['upstream', 'downstream'] as const
  switch (trouble) {
    case 'slow':
      return [{ type: 'latency', stream: 'downstream', attributes: { latency: 700, jitter: 300 } }]
    case 'narrow':
      return streams.map((stream) => ({ type: 'bandwidth', stream, attributes: { rate: 20 } }))
    case 'resets':
      return streams.map((stream) => ({ type: 'reset_peer', stream, attributes: { timeout: 0 } }))
    case 'silent':
      return streams.map((stream) => ({ type: 'timeout', stream, attributes: { timeout: 0 } }))
  }
}
