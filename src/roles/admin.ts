import type { Logger } from 'pino'
import { type AdminServer, type AdminServerOptions, createAdminServer } from '../admin/server.ts'
import { sees } from '../admin/scope.ts'
import { TokenBook } from '../admin/token-book.ts'
import type { Token } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import type { LogQuery } from '../delivery-log/log-query.ts'
import { accessOf } from '../topics/topic-list.ts'
import { topicTable } from '../topics/topics.ts'
import { clientOf } from './start/ask-kafka.ts'
import { kafkaSettings, topicLayout } from './start/settings.ts'
import { watchTopics } from './start/topic-watch.ts'
import type { KafkaRole } from '../topics/kafka-roles.ts'
import { within } from '../async/within.ts'
import { type AdminMetrics, createAdminMetrics } from '../telemetry/admin-metrics.ts'
import { buildInfo } from '../telemetry/build-info.ts'
import { type AtDesk, catalogCalls, deskCalls } from './catalog-calls.ts'
import { catalogHistoryCalls } from './catalog-history-calls.ts'
import { Live, type LiveOptions } from './console/open-live.ts'
import { openConsole, type OpenConsoleOptions, type OpenedConsole } from './console/open-console.ts'
import { openCatalogDesk, type OpenedDesk } from './operations/catalog-desk.ts'
import { liveReplays, replayCalls } from './replay-calls.ts'
import { openTokens } from './admin-tokens.ts'
import { applyCalls } from './apply-calls.ts'
import { audienceCalls } from './audience-calls.ts'
import { bulkCalls } from './bulk-calls.ts'
import { eventSearchCalls } from './event-search-calls.ts'
import { contentCalls, type ContentCallsOptions } from './content-calls.ts'
import { rotateCalls } from './rotate-calls.ts'
import { tokenCalls } from './token-calls.ts'
import { showKafkaClient } from './start/kafka-gauges.ts'
import { destinationCalls, dropCall, testCall } from './destination-calls.ts'
import { type Listening, listening } from './start/listening.ts'
import { logCalls } from './log-calls.ts'
import type { TopicTokens } from './catalog/followed-topic.ts'
import { OwnChanges } from './own-changes.ts'
import { openCatalog } from './catalog/open-catalog.ts'
import type { RoleCatalog } from './catalog/role-catalog.ts'
import type { Parts } from './start/parts.ts'
import { openPauseDesk } from './operations/pause-desk.ts'
import { FollowedPicture } from './operations/picture.ts'
import { auditTokens } from './operations/token-audit.ts'
import { statusCalls } from './status-calls.ts'
import { openReplayDesk } from './operations/replay-desk.ts'
import { showReady } from './start/readiness.ts'
import { openOwnTelemetry } from './start/telemetry.ts'

export type AdminOptions = {
  config: Config
  log: Logger
  /**
   * The list to which the started parts are added. When these parts stop, they answer the open requests, and
   * close within the shutdown timeout.
   */
  parts: Parts
  /** Called when this process can't continue. */
  onFatal: (error: Error) => void
}

/**
 * The part of the shutdown timeout that is reserved for closing the connections to Kafka, in milliseconds.
 */
const leaveMs = 1_000

/** Starts the admin API in a process of its own, with its metrics and probes. */
export async function startAdmin({ config, log, parts, onFatal }: AdminOptions): Promise<void> {
  const telemetry = await openOwnTelemetry({ config, log, parts })
  const metrics = createAdminMetrics()
  const { version, commit } = buildInfo()
  metrics.buildInfo.set({ version, commit, role: 'admin' }, 1)
  const tokens = parts.add(await openTokens(config, log))
  const file = parts.add(await openCatalog({ config, metrics, log, role: 'admin' }))
  const part = await startAdminPart({
    config,
    log,
    parts,
    onFatal,
    metrics,
    role: 'admin',
    tokens: () => tokens.current(),
    catalog: () => file.current(),
    file,
  })
  file.inForce()
  telemetry.tell({
    metrics() {
      showKafkaClient(metrics, config)
      showReady(metrics, 'admin', part.notReady())
      return metrics.registry.metrics()
    },
    notReady: () => part.notReady(),
  })
  log.info({ port: telemetry.port, adminPort: part.port }, 'admin started')
}

export type StartedAdmin = {
  readonly port: number
  readonly notReady: () => readonly string[]
  /** Makes a code that signs in to the console once, within a minute, as the holder of a token. */
  readonly codeOf: (token: Token) => Promise<string>
}

type ShownMetrics =
  | 'requests'
  | 'faults'
  | 'connectionsClosed'
  | 'sessions'
  | 'signIns'
  | 'liveViews'
  | 'liveViewsEnded'

/** Starts the server of the admin API, but not the port for metrics and probes. */
export async function startAdminPart({
  config,
  log,
  parts,
  onFatal,
  metrics,
  role,
  tokens,
  catalog,
  file,
  logQuery,
}: AdminOptions & {
  metrics: Pick<AdminMetrics, ShownMetrics>
  role: KafkaRole
  tokens: () => readonly Token[]
  catalog: () => Catalog
  file: Pick<RoleCatalog, 'topic' | 'problem'>
  /**
   * Queries the delivery log's index that runs in the same process. `undefined` if no index runs in this
   * process.
   */
  logQuery?: LogQuery | undefined
}): Promise<StartedAdmin> {
  const { topic } = file
  const { desk, pauseDesk, followed } = await openDesks({ config, log, parts, onFatal, role, catalog })
  parts.add(auditTokens(desk, tokens, log))
  const watch = await watchTopics(clientOf(kafkaSettings(config), log), topicsOf(role, config))
  parts.defer(() => within(leaveMs, watch.stop()))
  const deliveryLog = logCalls({ config, log, desk, catalog, query: logQuery })
  parts.defer(() => deliveryLog.close())
  const book = new TokenBook({ ofFile: tokens, ofTopic: () => topic?.tokens() ?? noTokens })
  const { own, catalogDesk } = await openDesk({ config, log, parts, role, topic, catalog })
  const atDesk = deskCalls(catalogDesk, config, log)
  const ofPages = { config, log, parts, metrics, tokens: book, topic, catalog, followed, desk: catalogDesk }
  const { console, live } = openPages({ ...ofPages, replays: liveReplays(desk, catalog) })
  const server = createAdminServer({
    calls: {
      ...replayCalls(desk, catalog, log),
      ...destinationCalls({ desk: pauseDesk, followed }, catalog, config, log),
      ...callsFromMemory({ followed, catalog, log, file }),
      ...dropCall(pauseDesk, catalog, log),
      ...testCall(catalog, config, log, desk),
      ...tokenCalls({ book, desk: catalogDesk, topic, catalog, config, log }),
      ...callsAtDesk(atDesk, catalog),
      ...bulkCalls({ followed, desk: pauseDesk, atDesk, catalog, config, log }),
      ...deliveryLog.calls,
      ...callsWithContent({ config, log, desk, catalog }),
      ...console.calls,
      live: async (request) => live.call(request),
    },
    findToken: (given) => book.find(given),
    ...console.ofServer,
    sees: (scope, id) => sees(scope, catalog(), id),
    ownChanges: () => own.inForce(),
    requestTimeoutMs: config.admin.requestTimeoutMs,
    ...observed(metrics, log),
  })
  const served = await serve(server, { config, parts, watch, live })
  return { ...served, codeOf: (token) => console.codeOf(token) }
}

/** Opens the console and its live views, and shows their metrics. */
function openPages({
  parts,
  metrics,
  ...given
}: Omit<OpenConsoleOptions, 'onSignIn'> &
  Omit<LiveOptions, 'onEnded'> & {
    readonly parts: Parts
    readonly metrics: Pick<AdminMetrics, ShownMetrics>
  }): { readonly console: OpenedConsole; readonly live: Live } {
  const console = openConsole({
    ...given,
    onSignIn: (by, result) => metrics.signIns.inc({ by, result }),
  })
  const live = new Live({ ...given, onEnded: (reason) => metrics.liveViewsEnded.inc({ reason }) })
  parts.defer(() => within(leaveMs, live.stop()))
  metrics.sessions.follow(() => console.sessions())
  metrics.liveViews.follow(() => live.count)
  return { console, live }
}

/** Opens what asks for replays and pauses, and what follows the health of destinations. */
async function openDesks({
  config,
  log,
  parts,
  onFatal,
  role,
  catalog,
}: AdminOptions & { role: KafkaRole; catalog: () => Catalog }) {
  const ofDesks = { config, log, role, say: (line: string) => log.warn(line), onOther: onFatal }
  const desk = await openReplayDesk({ ...ofDesks, catalog })
  parts.defer(() => within(leaveMs, desk.stop()))
  const pauseDesk = await openPauseDesk(ofDesks)
  parts.defer(() => within(leaveMs, pauseDesk.stop()))
  const followed = new FollowedPicture({ desk: pauseDesk, config, log })
  parts.defer(() => within(leaveMs, followed.stop()))
  return { desk, pauseDesk, followed }
}

/** Lets the server listen. It is not ready from the moment at which it stops. */
async function serve(
  server: AdminServer,
  {
    config,
    parts,
    watch,
    live,
  }: Pick<AdminOptions, 'config' | 'parts'> & {
    watch: { readonly obstacles: () => readonly string[] }
    live: Pick<Live, 'close'>
  },
): Promise<{ port: number; notReady(): readonly string[] }> {
  const address = adminAddress(config)
  const port = await listening(server.listen(address), address)
  let isStopping = false
  parts.defer(async () => {
    isStopping = true
    live.close()
    await server.stop(Math.max(0, config.shutdown.timeoutMs - leaveMs))
  })
  return { port, notReady: () => [...(isStopping ? ['stopping'] : []), ...watch.obstacles()] }
}

/** The calls that say how destinations are, and what audiences have. */
function callsFromMemory({ followed, catalog, log, file }: FromMemory) {
  return {
    ...statusCalls(followed, catalog, log, () => file.problem()),
    ...audienceCalls(followed, catalog, log),
  }
}

type FromMemory = {
  readonly followed: FollowedPicture
  readonly catalog: () => Catalog
  readonly log: Logger
  readonly file: Pick<RoleCatalog, 'problem'>
}

/** The calls that show events of Kafka. */
function callsWithContent(options: ContentCallsOptions) {
  return { ...contentCalls(options), ...eventSearchCalls(options) }
}

/** The calls that read and change the catalog in its topic. */
function callsAtDesk(atDesk: AtDesk, catalog: () => Catalog) {
  return {
    ...catalogCalls(atDesk, catalog),
    ...rotateCalls(atDesk),
    ...catalogHistoryCalls(atDesk),
    ...applyCalls(atDesk),
  }
}

/** Counts and logs what becomes of requests. */
function observed(
  metrics: Pick<AdminMetrics, 'requests' | 'faults' | 'connectionsClosed'>,
  log: Logger,
): Pick<AdminServerOptions, 'onAnswered' | 'onClosed' | 'onFault'> {
  return {
    onAnswered(call, status, by) {
      metrics.requests.inc({ call, status: String(status) })
      if (status === 403) log.warn({ call, by }, 'a request was refused: its token lacks the right')
    },
    onClosed: (reason) => metrics.connectionsClosed.inc({ reason }),
    onFault(error) {
      metrics.faults.inc()
      log.error({ err: error }, 'a fault of Sluice: please report it')
    },
  }
}

const noTokens: TopicTokens = new Map()

/** Opens the desk that changes the catalog: `undefined` if the catalog is in a file. */
async function openDesk({
  config,
  log,
  parts,
  role,
  topic,
  catalog,
}: Pick<AdminOptions, 'config' | 'log' | 'parts'> & {
  role: KafkaRole
  topic: RoleCatalog['topic'] | undefined
  catalog: () => Catalog
}): Promise<{ own: OwnChanges; catalogDesk: OpenedDesk | undefined }> {
  const own = new OwnChanges(catalog)
  if (config.catalog.source === 'file') return { own, catalogDesk: undefined }
  const desk = await openCatalogDesk(config, log, role, () => topic?.trouble()?.problem)
  parts.defer(() => within(leaveMs, desk.close()))
  return { own, catalogDesk: own.noted(desk) }
}

/** Returns the names of the topics that a role reads or writes. */
function topicsOf(role: KafkaRole, config: Config): readonly string[] {
  return (
    topicTable(topicLayout(config))
      // Without the delivery log, only live views miss something.
      .filter(({ key }) => accessOf(role, key).length > 0 && (role !== 'admin' || key !== 'attempts'))
      .map(({ topic }) => topic)
  )
}

/** Returns the address on which the admin API listens, with the name of the API for messages. */
export function adminAddress({ admin: { host, port } }: Config): Listening {
  return { host, port, what: 'The admin API', settings: 'SLUICE_ADMIN' }
}
