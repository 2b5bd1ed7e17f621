import type { Logger } from 'pino'
import { createAddressPolicy } from '../../address/policy.ts'
import type { Config } from '../../config/schema.ts'
import { type EgressEvidence, EgressHealth, judgeEveryMs } from '../../delivery/send/egress-health.ts'
import { OpenConnections } from '../../delivery/send/open-connections.ts'
import { type ConnectOutcome, createProxy, type ProxyOptions } from '../../delivery/connect/proxy.ts'
import { createResolver, type LookupOutcome, type ResolverOptions } from '../../delivery/connect/resolver.ts'
import { createSender, type Sender, type SenderOptions } from '../../delivery/send/sender.ts'
import type { EgressOutage } from '../../notices/watch.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { CountedSeries } from '../../telemetry/metric-tally.ts'
import type { ConnectionLimits } from './connection-limits.ts'

/** The sender of requests to hooks. */
export type Outbound = {
  sender: Sender
  open: Pick<OpenConnections, 'idle'>
  /**
   * Returns the last period in which the network of this process seemed to fail. Returns `undefined` if there
   * was none.
   */
  egressOutage(): EgressOutage | undefined
  /** Closes all sockets at once. */
  close(): Promise<void>
}

export type OutboundOptions = {
  config: Config
  metrics: WorkerMetrics
  log: Logger
  limits: ConnectionLimits['open']
  /**
   * Called with a reason when no hook can be reached, and with an empty text when hooks can be reached again.
   */
  onUnreachable: (reason: string) => void
}

/** How much the delivery log stores of an answer that reports a failure, in bytes. */
const answerBytes = 2 * 1024

/**
 * Connects the parts between a worker and its hooks: allowed addresses, name resolution, connections, and a
 * proxy if one is configured.
 */
export function createOutbound(options: OutboundOptions): Outbound {
  const { config, metrics, limits } = options
  const { enabled, answers } = config.attempts
  const keptAnswerBytes = enabled && answers ? answerBytes : 0
  const open = new OpenConnections({ ...limits, onClosed: () => metrics.idleConnectionsClosed.inc() })
  metrics.idleConnectionsLimit.set(limits.maxIdle)
  let outage: EgressOutage | undefined
  const egress = new EgressHealth((isSuspect, evidence, failingForMs) => {
    const nowMs = performance.now()
    if (isSuspect) outage = { sinceMs: nowMs - failingForMs, untilMs: Number.POSITIVE_INFINITY }
    else if (outage !== undefined) outage = { ...outage, untilMs: nowMs }
    const forMs = outage === undefined ? 0 : nowMs - outage.sinceMs
    showEgress(options, isSuspect, { ...evidence, forS: Math.round(forMs / 1_000) })
  })
  const votes = egressVotes(metrics)
  votes(egress.evidence)
  const judging = setInterval(() => {
    egress.judge()
    votes(egress.evidence)
  }, judgeEveryMs).unref()
  const way = openWay(config, {
    lookups: { onLookup: lookupCounter(metrics) },
    proxy: proxyObserver(options),
    sending: { open, egress, keptAnswerBytes },
  })
  return {
    sender: way.sender,
    open,
    egressOutage: () => outage,
    async close() {
      clearInterval(judging)
      await way.close()
    },
  }
}

/**
 * Connects the parts between a command and the hooks that it sends a few requests to. The requests take the
 * same way as those of a worker with the same configuration.
 */
export function createPlainOutbound(config: Config): Way {
  return openWay(config, { sending: { keptAnswerBytes: answerBytes } })
}

/** A sender, with the parts that it uses. `close` closes all sockets at once. */
type Way = Pick<Outbound, 'sender' | 'close'>

type ProxyObserver = Pick<ProxyOptions, 'onConnect' | 'onDown'>

type WayOptions = {
  readonly lookups?: Pick<ResolverOptions, 'onLookup'>
  /** The observer of the proxy, if one is configured. */
  readonly proxy?: ProxyObserver
  readonly sending: Pick<SenderOptions, 'open' | 'egress' | 'keptAnswerBytes'>
}

function openWay({ delivery }: Config, { lookups, proxy: observer, sending }: WayOptions): Way {
  const { allowAddresses, dnsServers, timeoutMs, poolIdleMs, proxy: url } = delivery
  const resolver = createResolver({ servers: dnsServers, ...lookups })
  const proxy = url === undefined ? undefined : createProxy({ url, resolver, timeoutMs, ...observer })
  const policy = createAddressPolicy(allowAddresses)
  const sender = createSender({ policy, resolver, proxy, timeoutMs, poolIdleMs, ...sending })
  return {
    sender,
    async close() {
      await sender.close()
      await proxy?.close()
      resolver.close()
    },
  }
}

/** `forS`: how long servers have been failing, or were failing, in seconds. */
function showEgress(
  { metrics, log }: OutboundOptions,
  isSuspect: boolean,
  told: EgressEvidence & { readonly forS: number },
): void {
  metrics.egressSuspect.set(isSuspect ? 1 : 0)
  if (isSuspect) log.error(told, egressSuspected)
  else log.info(told, 'servers answer again: the network of this worker is not suspect any more')
}

const egressSuspected =
  'servers of different customers that could be reached until recently can not be reached any more: check the network, DNS and firewall of this worker. Until they answer again, its failures make no notices, no automatic pauses and no alert SluiceEndpointFailing'

function egressVotes({ egressServers }: WorkerMetrics): (evidence: EgressEvidence) => void {
  return (evidence) => {
    for (const state of ['lost', 'dead', 'working'] as const) egressServers.set({ state }, evidence[state])
  }
}

/**
 * Creates the observer of the proxy. It is created even without a proxy, because an alert needs its series.
 */
function proxyObserver({ config, metrics, log, onUnreachable }: OutboundOptions): ProxyObserver {
  const { proxy: url } = config.delivery
  // Only the host is logged, because the URL may contain a login.
  const host = url === undefined ? '' : new URL(url).host
  return {
    onConnect: connectCounter(metrics),
    onDown(isDown, reason) {
      metrics.proxyDown.set(isDown ? 1 : 0)
      onUnreachable(isDown ? `${host}: ${reason}` : '')
      if (isDown)
        log.error({ proxy: host, reason }, 'the proxy can not be used: deliveries stop until it can')
      else log.info({ proxy: host }, 'the proxy can be used again')
    },
  }
}

function lookupCounter({
  lookups,
  lookupSeconds,
}: WorkerMetrics): (outcome: LookupOutcome, ms: number) => void {
  const counted: Record<LookupOutcome, CountedSeries> = {
    found: lookups.series({ outcome: 'found' }),
    not_found: lookups.series({ outcome: 'not_found' }),
    failed: lookups.series({ outcome: 'failed' }),
    stale: lookups.series({ outcome: 'stale' }),
  }
  const seconds = lookupSeconds.series({})
  return (outcome, ms) => {
    counted[outcome].inc()
    seconds.observe(ms / 1000)
  }
}

function connectCounter({ proxyConnects }: WorkerMetrics): (outcome: ConnectOutcome) => void {
  const counted: Record<ConnectOutcome, CountedSeries> = {
    tunnel: proxyConnects.series({ outcome: 'tunnel' }),
    target: proxyConnects.series({ outcome: 'target' }),
    fault: proxyConnects.series({ outcome: 'fault' }),
    down: proxyConnects.series({ outcome: 'down' }),
  }
  return (outcome) => counted[outcome].inc()
}
