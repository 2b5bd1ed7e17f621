import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brokerProperties, renderProperties } from './broker-properties.ts'
import { formatFolder } from './format.ts'
import { waitForCluster } from './metadata.ts'
import type { KafkaNode } from './running-kafka.ts'
import { lastLines, startTethered, type Tethered } from './tether.ts'

/**
 * The plan of one broker that runs on Java. `folder` is used by this broker only. `ports` has the port for
 * clients and the port for the controller.
 */
export type NodePlan = {
  id: number
  count: 1 | 3
  folder: string
  ports: { client: number; controller: number }
  voters: readonly string[]
  clusterId: string
  jars: string
  /** The file that `findClassArchive` has found. */
  classArchive?: string | undefined
  heapMb: number
  /**
   * A folder that is removed if this process ends without calling `stop`. `undefined` if the data is kept.
   */
  scratch: string | undefined
  /**
   * Additional listeners and settings. With these, tests can make the same demands on clients as real
   * clusters.
   */
  extra?: ExtraPlan
}

/** Listeners in addition to the plain listener, and the settings that they need. */
export type ExtraPlan = {
  listeners: readonly ExtraListener[]
  /** Settings of the broker, which overrule all other settings. */
  properties?: Readonly<Record<string, string>>
  /** Flags for the broker's Java, such as `-Dname=value`. */
  javaFlags?: readonly string[]
  /** Arguments for `StorageTool format`. With them, users exist from the first start of the broker on. */
  formatArgs?: readonly string[]
}

/**
 * An additional listener. Its clients are told to connect to the port `advertised`, for example the port of a
 * proxy, at the host `advertisedHost`. The defaults are the listener's own port, and its own address.
 */
export type ExtraListener = {
  name: string
  protocol: 'PLAINTEXT' | 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'
  port: number
  advertised?: number
  host?: string
  advertisedHost?: string
}

const startTimeoutMs = 60_000

/** A broker as a separate Java process, which ends with this process. */
export class JavaNode implements KafkaNode {
  readonly id: number
  readonly port: number
  readonly #plan: NodePlan
  /** The broker's process. `undefined` while the broker doesn't run. */
  #process: Tethered | undefined

  constructor(plan: NodePlan) {
    this.id = plan.id
    this.port = plan.ports.client
    this.#plan = plan
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Writes the file with the settings. Formats the data folder if it isn't formatted yet. */
  async prepare(): Promise<void> {
    const { folder, jars, clusterId, classArchive } = this.#plan
    await mkdir(folder, { recursive: true })
    await writeFile(this.#path('server.properties'), renderProperties(this.#properties()))
    await formatFolder({
      data: this.#path('data'),
      nodeId: this.id,
      clusterId,
      jars,
      settings: this.#path('server.properties'),
      formatArgs: this.#plan.extra?.formatArgs ?? [],
      javaFlags: archiveFlags(classArchive),
    })
  }

  async start(): Promise<void> {
    if (this.#process !== undefined) return
    const logFile = this.#path('broker.log')
    const broker = await startTethered('java', this.#command(), { logFile, scratch: this.#plan.scratch })
    this.#process = broker
    const ended = new AbortController()
    void broker.exited.then((code) => {
      this.#process = undefined
      ended.abort(new Error(`its process ended with code ${code}`))
    })
    try {
      await waitForCluster([this.address], 1, { timeoutMs: startTimeoutMs, signal: ended.signal })
    } catch (cause) {
      await this.kill('SIGKILL')
      throw new Error(
        `Kafka broker ${this.id} did not start. End of ${logFile}:\n${await lastLines(logFile)}`,
        {
          cause,
        },
      )
    }
  }

  async kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const broker = this.#process
    broker?.kill(signal)
    await broker?.exited
  }

  /** Sends SIGTERM, and SIGKILL if the process still runs after `deadlineMs`. */
  async stop(deadlineMs: number): Promise<void> {
    const broker = this.#process
    const timer = setTimeout(() => broker?.kill('SIGKILL'), deadlineMs)
    await this.kill('SIGTERM')
    clearTimeout(timer)
  }

  #path(name: string): string {
    return join(this.#plan.folder, name)
  }

  #properties(): Record<string, string> {
    const { id, count, ports, voters, extra } = this.#plan
    const client = `PLAINTEXT://${this.address}`
    const listeners = extra?.listeners ?? []
    const properties = brokerProperties({
      id,
      count,
      voters,
      listeners: [
        client,
        ...listeners.map(({ name, port, host = '127.0.0.1' }) => `${name}://${host}:${port}`),
        `CONTROLLER://127.0.0.1:${ports.controller}`,
      ],
      advertised: [
        client,
        ...listeners.map(
          ({ name, port, advertised = port, host = '127.0.0.1', advertisedHost = host }) =>
            `${name}://${advertisedHost}:${advertised}`,
        ),
      ],
      protocols: Object.fromEntries(listeners.map(({ name, protocol }) => [name, protocol])),
      interBroker: 'PLAINTEXT',
      logDir: this.#path('data'),
    })
    return { ...properties, ...extra?.properties }
  }

  #command(): string[] {
    const { jars, heapMb, extra, classArchive } = this.#plan
    return [
      ...heapFlags(heapMb),
      ...archiveFlags(classArchive),
      ...(extra?.javaFlags ?? []),
      '-XX:-UsePerfData',
      '-cp',
      `${jars}/*`,
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
      '-Dorg.slf4j.simpleLogger.showDateTime=true',
      '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS',
      'kafka.Kafka',
      this.#path('server.properties'),
    ]
  }
}

/**
 * Returns the flags for a heap. With a small heap, the broker starts quickly. With a large heap, the broker
 * gets the garbage collector and the compiler that suit a high load.
 */
function heapFlags(heapMb: number): string[] {
  const heap = `-Xmx${heapMb}m`
  if (heapMb >= 1024) return [heap, `-Xms${heapMb}m`, '-XX:+UseG1GC']
  return [heap, '-Xms128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']
}

function archiveFlags(classArchive: string | undefined): string[] {
  return classArchive === undefined ? [] : [`-XX:SharedArchiveFile=${classArchive}`]
}
