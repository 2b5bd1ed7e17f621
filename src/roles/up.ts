import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { createToken, readTokens, type Token, tokenLine } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { newKeyLine } from '../catalog-log/keys.ts'
import { settingsOf } from '../config/describe.ts'
import type { Config } from '../config/schema.ts'
import { type RunningKafka, startKafka } from '../development/kafka.ts'
import { adminAddress, type StartedAdmin, startAdminPart } from './admin.ts'
import { openTokens } from './admin-tokens.ts'
import { clientOf, openKafka } from './start/ask-kafka.ts'
import { refuseFaultyCatalog } from './catalog/open-catalog.ts'
import { gatewayAddress, startGatewayPart } from './gateway.ts'
import { type Listening, refuseTakenPorts } from './start/listening.ts'
import { openCatalogDesk, refusalText } from './operations/catalog-desk.ts'
import { type LogIndex, openLogIndex } from './operations/log-index.ts'
import { answerQueries, indexAddress } from './log-serve.ts'
import type { Parts } from './start/parts.ts'
import { showReady } from './start/readiness.ts'
import { kafkaSettings } from './start/settings.ts'
import { StartError } from './start/start-error.ts'
import { openOwnTelemetry, type OwnTelemetry, setProbesAddress } from './start/telemetry.ts'
import { createAdminMetrics } from '../telemetry/admin-metrics.ts'
import { createGatewayMetrics } from '../telemetry/gateway-metrics.ts'
import { createLogMetrics } from '../telemetry/log-metrics.ts'
import { packageFolder } from '../telemetry/build-info.ts'
import { applyTopicTable } from './operations/topic-table.ts'
import { kept, keptFiles } from '../workshop/kept-files.ts'
import { ownCommand } from '../workshop/own-command.ts'
import { answers, readRunning, removeRunning, workshopFolder, writeRunning } from '../workshop/running.ts'
import { startMember } from './worker.ts'

export type UpOptions = {
  config: Config
  log: Logger
  parts: Parts
  onFatal: (error: Error) => void
  /** Prints a line for the person at the terminal. */
  say: (line: string) => void
}

const dataDir = `${workshopFolder}/kafka`
/** Address ranges of this machine. */
const loopback = ['127.0.0.0/8', '::1/128']

type Started = {
  /** The port of `/metrics`, `/livez` and `/readyz`. */
  httpPort: number
  /** The port of the tracking API. */
  gatewayPort: number
  /**
   * The port of the admin API. `undefined` if there are no tokens: the API isn't started then, because nobody
   * could use it.
   */
  adminPort: number | undefined
  /** Makes a code that signs in to the console. */
  codeOf: StartedAdmin['codeOf'] | undefined
  /** A write key of the catalog. */
  writeKey: string | undefined
}

/**
 * Starts all roles in one process. Without configured brokers, it starts a Kafka for development with one
 * replica. Its data, and all else that is kept between starts, is in the folder `.sluice`.
 */
export async function startUp({ say, ...options }: UpOptions): Promise<void> {
  const { config, log, parts } = options
  if (config.kafka.brokers.length === 0) return startWorkshop({ say, ...options })
  const telemetry = await openOwnTelemetry(options)
  // The catalog and the ports are checked first. If the catalog is faulty or a port is taken, nothing needs
  // to be stopped.
  await refuseFaultyCatalog(config)
  await refuseTakenPorts(addressesOf(config, { hasAdmin: config.admin.tokensFile !== undefined }))
  await openKafka(config, log, 'up')
  await applyTopicTable(config, log)
  const tokens = config.admin.tokensFile === undefined ? undefined : parts.add(await openTokens(config, log))
  await startRoles({ ...options, tokens: tokens && (() => tokens.current()) }, telemetry)
}

/** Starts a Sluice for development, with a Kafka of its own. */
async function startWorkshop({ say, ...options }: UpOptions): Promise<void> {
  const { log, parts } = options
  const config = forDevelopment(options.config)
  await refuseSecond()
  await refuseTakenPorts([...setProbesAddress(config), ...addressesOf(config, { hasAdmin: true })])
  const telemetry = await openOwnTelemetry(options)
  await refuseFaultyCatalog(config)
  const kafka = parts.add(await startDevelopmentKafka(say))
  const development = { ...config, kafka: { ...config.kafka, brokers: kafka.brokers } }
  for (const line of await applyTopicTable(development, log)) say(`topics: ${line}`)
  const token = keepSecrets(development)
  const writeKey = await firstWriteKey(development, log)
  const read = readTokens(tokenLine(token, 'developer', 'admin'))
  const tokens = read.ok ? read.tokens : []
  const started = await startRoles({ ...options, config: development, tokens: () => tokens }, telemetry)
  const { pid } = process
  writeRunning({
    pid,
    probes: `http://127.0.0.1:${started.httpPort}/livez`,
    settings: {
      ...settingsOf(development),
      SLUICE_ADMIN_URL: `http://127.0.0.1:${started.adminPort}`,
      SLUICE_ADMIN_TOKEN_FILE: keptFiles.adminToken,
    },
  })
  parts.defer(async () => removeRunning(pid))
  const secrets = {
    token,
    writeKey: writeKey ?? started.writeKey,
    code: tokens[0] && (await started.codeOf?.(tokens[0])),
  }
  for (const notice of developmentNotice(development, started, secrets)) say(notice)
}

/** Returns the settings with those that are the same in every Sluice for development, whatever is set. */
function forDevelopment(config: Config): Config {
  const { topics, admin, delivery } = config
  return {
    ...config,
    topics: { ...topics, development: true },
    // Only this machine may reach an API whose token is printed on the terminal.
    admin: { ...admin, host: '127.0.0.1' },
    delivery: { ...delivery, allowAddresses: [...new Set([...delivery.allowAddresses, ...loopback])] },
  }
}

/** Throws if another `sluice up` runs in this folder. */
async function refuseSecond(): Promise<void> {
  const running = readRunning()
  if (running === undefined || !(await answers(running))) return
  throw new StartError(
    `\`sluice up\` runs in this folder already (process ${running.pid}, ${running.probes}). Other commands in this folder find it. To have a second one, start it in another folder, with other ports.`,
  )
}

/** Makes the files with secrets that don't exist yet. Returns the token of the admin API. */
function keepSecrets({ catalog, attempts }: Config): string {
  if (catalog.source === 'topic' && catalog.keysFile === keptFiles.catalogKeys)
    kept(keptFiles.catalogKeys, newKeyLine)
  if (attempts.userKeyFile === keptFiles.userKey)
    kept(keptFiles.userKey, () => randomBytes(24).toString('base64url'))
  return kept(keptFiles.adminToken, () => createToken('developer', 'admin').token)
}

/**
 * Makes a first source if the catalog's topic has nothing yet, so that messages can be sent at once. Returns
 * its write key.
 */
async function firstWriteKey(config: Config, log: Logger): Promise<string | undefined> {
  if (config.catalog.source === 'file') return undefined
  const desk = await openCatalogDesk(config, log, 'up')
  try {
    if ((await desk.look()).head !== undefined) return undefined
    const writeKey = `wk_${randomBytes(12).toString('base64url')}`
    const given = { id: 'app', name: 'My first source', writeKeys: [writeKey] }
    const edit = { name: { kind: 'source', id: 'app' }, op: 'put', given } as const
    // Whoever has removed the data of this Kafka wants to begin anew.
    const answer = await desk.change({ edits: [edit], by: 'sluice up', accepts: true })
    if (!answer.ok) throw new StartError(refusalText(answer))
    return writeKey
  } finally {
    await desk.close()
  }
}

function addressesOf(config: Config, { hasAdmin }: { readonly hasAdmin: boolean }): readonly Listening[] {
  const index = config.attempts.enabled ? [indexAddress(config)] : []
  return [gatewayAddress(config), ...(hasAdmin ? [adminAddress(config)] : []), ...index]
}

async function startDevelopmentKafka(say: UpOptions['say']): Promise<RunningKafka> {
  try {
    return await startKafka({ brokers: [], dataDir, port: 9092, report: say })
  } catch (cause) {
    // The message says what to install, or it contains the last output of the broker.
    throw new StartError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/**
 * Starts a worker, a gateway and the admin API, with one port for all probes. They stop in reverse order, so
 * the worker can still deliver the messages that arrive last. `tokens` says who may use the API. Without
 * `tokens`, the API isn't started.
 */
async function startRoles(
  options: Omit<UpOptions, 'say'> & { tokens: (() => readonly Token[]) | undefined },
  telemetry: OwnTelemetry,
): Promise<Started> {
  const { log, tokens } = options
  const member = await startMember({ ...options, role: 'up' })
  const { metrics: registry, laidOut } = member
  const tracing = member.tracing?.gateway
  const catalog = (): Catalog => member.catalog()
  const metrics = createGatewayMetrics(member.common)
  const gateway = await startGatewayPart({ ...options, laidOut, metrics, catalog, tracing })
  const index = await startIndex(options, registry)
  const adminMetrics = createAdminMetrics(member.common)
  const ofAdmin = {
    ...options,
    metrics: adminMetrics,
    role: 'up',
    catalog,
    logQuery: index?.query,
    file: member.catalogFile,
  } as const
  const admin = tokens && (await startAdminPart({ ...ofAdmin, tokens }))
  // The index isn't included, because all other parts work without it.
  const notReady = () => [...member.notReady(), ...gateway.notReady(), ...(admin?.notReady() ?? [])]
  telemetry.tell({
    metrics() {
      member.collect()
      gateway.collect()
      index?.collect()
      showReady(member.common, 'up', notReady())
      return registry.metrics()
    },
    notReady,
  })
  const { port: httpPort } = telemetry
  const { port: gatewayPort } = gateway
  log.info({ port: httpPort, tiers: member.tiers }, 'worker started')
  log.info({ port: httpPort, gatewayPort }, 'gateway started')
  if (admin !== undefined) log.info({ port: httpPort, adminPort: admin.port }, 'admin started')
  const writeKey = [...catalog().sources.values()].find(({ enabled }) => enabled)?.writeKeys[0]
  return { httpPort, gatewayPort, adminPort: admin?.port, codeOf: admin?.codeOf, writeKey }
}

/** Starts the index of the delivery log, if the worker writes that log. */
async function startIndex(
  options: Omit<UpOptions, 'say'>,
  registry: ReturnType<typeof createLogMetrics>['registry'],
): Promise<LogIndex | undefined> {
  const { config, log } = options
  if (!config.attempts.enabled) return undefined
  const kafka = clientOf(kafkaSettings(config), log)
  const metrics = createLogMetrics({ registry })
  const index = await openLogIndex({ ...options, kafka, metrics })
  const queryPort = await answerQueries({ ...options, metrics, query: index.query })
  log.info({ queryPort }, 'log started')
  return index
}

function developmentNotice(
  { kafka: { brokers }, catalog, kafka: { topicPrefix } }: Config,
  { httpPort, gatewayPort, adminPort }: Started,
  {
    token,
    writeKey = 'WRITE_KEY',
    code = '',
  }: {
    readonly token: string
    readonly writeKey: string | undefined
    readonly code: string | undefined
  },
): string[] {
  const sluice = ownCommand(process.cwd(), fileURLToPath(packageFolder))
  const isInTopic = catalog.source === 'topic'
  const place = isInTopic
    ? `the topic ${topicPrefix}catalog   ${sluice} destinations create my-service --url http://127.0.0.1:3000/hook --source app`
    : `${catalog.file}   an edit takes effect within a second`
  return [
    '',
    'This is for development: one broker, one replica, and URLs on this machine (127.0.0.0/8, ::1) are allowed.',
    `  Kafka    ${brokers.join(',')}   data in ${dataDir}`,
    `  gateway  http://127.0.0.1:${gatewayPort}   Segment's tracking API; /docs tells more`,
    `  admin    http://127.0.0.1:${adminPort ?? ''}/openapi.json   with Authorization: Bearer ${token}`,
    `  console  http://127.0.0.1:${adminPort ?? ''}/console/#code=${code}   signs in once, within a minute; later: ${sluice} console`,
    `  metrics  http://127.0.0.1:${httpPort}/metrics`,
    `  catalog  ${place}`,
    `  try      curl http://127.0.0.1:${gatewayPort}/v1/track -u ${writeKey}: -d '{"userId":"u1","event":"Hello"}'`,
    `  look     ${sluice} log tail   Commands in this folder find this Sluice without settings.`,
    `Times are local (${new Intl.DateTimeFormat('en', { timeZoneName: 'longOffset' }).formatToParts().find(({ type }) => type === 'timeZoneName')?.value ?? ''}). Ctrl-C stops it.`,
    '',
  ]
}
