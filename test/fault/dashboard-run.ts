import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { type ActId, story, storyMinutes } from '../../scripts/plots/story.ts'
import { freePorts } from '../../src/development/free-ports.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { ensureCommands } from '../support/debian.ts'
import { type Collector, startCollector } from '../support/otlp.ts'
import { type Prometheus, startPrometheus } from '../support/prometheus.ts'
import { answer, neverAnswer, type Receiver, type Script, startReceiver } from '../support/receiver.ts'
import { type StampedBuild, stampBuild } from '../support/stamped-build.ts'
import { startTokenServer, type TokenServer } from '../support/token-server.ts'
import { type CatalogData, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { DashboardTraffic, key } from './dashboard-traffic.ts'

const roles = {
  admin: 'admin',
  index: 'log serve',
  gateway: 'gateway',
  'worker-1': 'worker',
  'worker-2': 'worker',
} as const
type Instance = keyof typeof roles
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
const instances = Object.keys(roles) as Instance[]

type Changing = { ads: 'elsewhere' | 'off' | 'on'; partner: 'on' | 'paused' }

/** All roles, and a Prometheus that has scraped them while the story of the dashboards was played. */
export class DashboardRun {
  readonly prometheus: Prometheus
  readonly scene: Scene
  /** The time in which the story was played, in epoch seconds. */
  fromS = 0
  untilS = 0
  /** How long a minute of the story lasted, in seconds. */
  readonly minuteS: number
  readonly #stage: Stage
  readonly #running = new Map<Instance, SluiceProcess>()

  private constructor(stage: Stage, prometheus: Prometheus, seconds: number) {
    this.#stage = stage
    this.scene = stage.scene
    this.prometheus = prometheus
    this.minuteS = seconds / storyMinutes
  }

  /**
   * Plays the story in `seconds`. Traffic begins `warmUpS` seconds earlier, so that rates have values from the
   * beginning.
   */
  static async play({ seconds, warmUpS }: { seconds: number; warmUpS: number }): Promise<DashboardRun> {
    const stage = await setStage()
    const run = new DashboardRun(stage, await startPrometheus(stage.ports), seconds)
    try {
      await run.#play(warmUpS)
    } catch (error) {
      await run.end()
      throw error
    }
    return run
  }

  /** Returns the metrics that all processes show now. */
  async metrics(): Promise<string> {
    const pages = Object.values(this.#stage.ports).map(async (port) =>
      (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
    )
    return (await Promise.all(pages)).join('')
  }

  async end(): Promise<void> {
    await this.prometheus.stop()
    for (const one of this.#running.values()) await one.kill()
    await this.#stage.clear()
  }

  async #play(warmUpS: number): Promise<void> {
    const { scene, tokens, gatewayPort, before } = this.#stage
    await Promise.all(instances.map((instance) => this.#start(instance, before)))
    const traffic = new DashboardTraffic(scene.prefix, tokens, {
      gateway: `http://127.0.0.1:${gatewayPort}`,
      admin: () => `http://127.0.0.1:${this.#running.get('admin')?.adminPort}`,
    })
    traffic.start()
    await passTime(warmUpS * 1_000)
    this.fromS = Math.floor(Date.now() / 1_000)
    for (const { id, atMin } of story) {
      await this.#passUntil(atMin)
      await this.#act(id, traffic)
    }
    await this.#passUntil(storyMinutes)
    this.untilS = Math.floor(Date.now() / 1_000)
    await traffic.stop()
  }

  async #passUntil(minute: number): Promise<void> {
    await passTime(Math.max(0, (this.fromS + minute * this.minuteS) * 1_000 - Date.now()))
  }

  async #act(id: ActId, traffic: DashboardTraffic): Promise<void> {
    const { scene, answers } = this.#stage
    switch (id) {
      case 'begin':
        return
      case 'sync':
        return traffic.sync(0, 120)
      case 'slow':
        answers.set('/crm', late(1_500))
        answers.set('/mirror', neverAnswer)
        return
      case 'fails':
        answers.set('/crm', answer(503))
        return
      case 'recovers':
        answers.set('/crm', answer(200))
        answers.set('/mirror', answer(200))
        return
      case 'connect':
        scene.catalog.rewrite(catalogOf(this.#stage, { ads: 'off', partner: 'paused' }))
        return traffic.sync(40, 160)
      case 'resume':
        scene.catalog.rewrite(catalogOf(this.#stage, { ads: 'on', partner: 'on' }))
        return
      case 'deploy':
        for (const instance of instances) await this.#deploy(instance)
        return
      case 'replay':
        answers.set('/refunds', answer(200))
        return traffic.replay('refunds')
    }
  }

  async #deploy(instance: Instance): Promise<void> {
    const ended = await this.#running.get(instance)?.terminate()
    if (ended?.code !== 0) throw new Error(`${instance} ended with ${ended?.code}, and not in good order`)
    await this.#start(instance, this.#stage.after)
  }

  async #start(instance: Instance, { program }: StampedBuild): Promise<void> {
    const { scene, ports, gatewayPort, folder } = this.#stage
    const variables = {
      ...scene.variables,
      SLUICE_HTTP_PORT: String(ports[instance]),
      ...(roles[instance] === 'worker' && { SLUICE_STATE_FOLDER: join(folder, instance) }),
      ...(roles[instance] === 'gateway' && { SLUICE_GATEWAY_PORT: String(gatewayPort) }),
    }
    this.#running.set(instance, await startSluice(variables, { role: roles[instance], program }))
  }
}

/** All that the processes need. */
type Stage = {
  readonly scene: Scene
  readonly tokens: AdminTokens
  /** The customers' server, and how it answers at a path now. At other paths, it answers 200. */
  readonly receiver: Receiver
  readonly answers: Map<string, Script>
  readonly login: TokenServer
  /** The build that runs at first, and the one that is deployed. */
  readonly before: StampedBuild
  readonly after: StampedBuild
  readonly ports: Readonly<Record<Instance, number>>
  readonly gatewayPort: number
  /** The folder for the states of the workers. */
  readonly folder: string
  clear(): Promise<void>
}

async function setStage(): Promise<Stage> {
  ensureCommands({ prometheus: 'prometheus', promtool: 'prometheus' })
  const answers = new Map([
    ['/legacy', answer(500)],
    ['/refunds', answer(404)],
  ])
  const answerNow: Script = (...given) => (answers.get(given[0].path) ?? answer(200))(...given)
  const receiver = await startReceiver(answerNow, { isKept: false })
  const login = await startTokenServer()
  login.lifeSeconds = 60
  const tokens = await makeTokens()
  const collector: Collector = await startCollector()
  const scene = await setScene({
    catalog: catalogOf({ receiver, login }, { ads: 'elsewhere', partner: 'on' }),
    variables: {
      ...settings,
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
    },
  })
  const [before, after] = [stampBuild('4f1c20d98ab3'), stampBuild('b7e65a0c3d12')]
  const [gatewayPort = 0, ...free] = await freePorts(instances.length + 1)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-state-'))
  return {
    scene,
    tokens,
    receiver,
    answers,
    login,
    before,
    after,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a port for each instance
    ports: Object.fromEntries(instances.map((name, index) => [name, free[index]])) as Record<
      Instance,
      number
    >,
    gatewayPort,
    folder,
    async clear() {
      await collector.stop()
      await receiver.stop()
      await login.stop()
      scene.close()
      for (const one of [tokens, before, after]) one.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits are compressed, so that minutes show what takes hours in production. */
const settings = {
  SLUICE_RETRY_LADDER: '2s,10s,30s',
  SLUICE_RETRY_THEN: '30s',
  SLUICE_RETRY_LIMIT: '2m',
  SLUICE_AUDIENCES_FIRST_SYNC_RATE: '10',
  SLUICE_NOTICES_FAILING_AFTER: '20s',
  SLUICE_METRICS_PER_DESTINATION: 'true',
  // A URL that hangs uses so few requests up at once, so others to it wait for their turn.
  SLUICE_DELIVERY_MAX_IN_FLIGHT_SICK: '16',
  SLUICE_LOG_ATTEMPTS: 'false',
  OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
  OTEL_TRACES_SAMPLER_ARG: '0.05',
}

function catalogOf({ receiver, login }: Pick<Stage, 'receiver' | 'login'>, changing: Changing): CatalogData {
  const url = (id: string) => `${receiver.origin}/${id}`
  const destination = (id: string, source: string, more: object = {}) => ({
    id,
    sources: [source],
    hooks: [{ id: 'main', url: url(id) }],
    ...more,
  })
  const oauth = {
    kind: 'oauth2',
    tokenUrl: `${login.origin}/token`,
    clientId: 'sluice',
    clientSecret: 'secret',
  }
  return {
    sources: [
      { id: 'shop', writeKeys: [key('shop')] },
      ...['app', 'returns', 'old-shop'].map((id) => ({ id, writeKeys: [key(id)] })),
      { id: 'unheard' },
      { id: 'elsewhere' },
      { id: 'space', kind: 'audiences' },
      { id: 'sluice' },
    ],
    destinations: [
      destination('analytics', 'shop'),
      destination('crm', 'shop', { maxInFlight: 8, hooks: [{ id: 'main', url: url('crm'), login: oauth }] }),
      destination('warehouse', 'shop', { batch: { maxMessages: 50, maxWait: '500ms' } }),
      destination('partner', 'shop', {
        state: changing.partner,
        filter: { condition: 'properties.total > 50' },
        rateLimit: { perSecond: 30 },
      }),
      destination('search', 'app', {
        hooks: [
          { id: 'main', url: url('search') },
          { id: 'mirror', url: url('mirror') },
        ],
      }),
      destination('legacy', 'old-shop'),
      destination('refunds', 'returns'),
      destination('mailer', 'space'),
      destination('ads', changing.ads === 'elsewhere' ? 'elsewhere' : 'space', {
        state: changing.ads === 'off' ? 'off' : 'on',
      }),
      destination('ops', 'sluice'),
    ],
  }
}

function late(delayMs: number): Script {
  return (_request, response) => setTimeout(() => response.writeHead(200).end(), delayMs)
}
