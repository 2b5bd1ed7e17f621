/**
 * The way in which a Kafka was obtained: it was configured, it was started in a Docker engine, or it was
 * started on the machine's own Java.
 */
export type KafkaRuntime = 'configured' | 'docker' | 'java'

/** A Kafka that answers. `stop` ends it only if `startKafka` has started it. */
export type RunningKafka = {
  /** The addresses for clients, each as `host:port`. */
  brokers: string[]
  way: KafkaRuntime
  /** A line of text for people, which says how the Kafka was obtained and where it runs. */
  describe: string
  /** The single brokers, for tests that stop and start them. Set only if Kafka was started on Java. */
  nodes?: KafkaNode[]
  stop(): Promise<void>
}

/** A broker (and controller) of a cluster. Its port and its data stay the same when it starts again. */
export type KafkaNode = {
  readonly id: number
  readonly port: number
  /** The pid of the broker's Java process. `undefined` while the broker doesn't run. */
  readonly pid: number | undefined
  /**
   * Sends the signal to the broker's process, and resolves once the process has ended. Does nothing if the
   * broker doesn't run.
   */
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /**
   * Starts the broker, and resolves once the broker is part of the cluster again. In a cluster of three
   * brokers, two must be running for this.
   */
  start(): Promise<void>
}

/** The receiver of progress messages, one line at a time. */
export type Report = (line: string) => void

export type ClusterPlan = {
  count: 1 | 3
  heapMb: number
  /**
   * The folder that keeps the data between starts. `undefined`: the data is in a temporary folder, which is
   * removed at the stop.
   */
  dataDir: string | undefined
  /** The preferred port for clients of the first broker. */
  port: number | undefined
  report: Report
}

/**
 * Says if Kafka can be started in one of the ways (Docker or Java) on this machine. `reason` is half a
 * sentence that says what is missing.
 */
export type Availability = { ok: true } | { ok: false; reason: string }
