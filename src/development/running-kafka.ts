/**
 * The way in which a Kafka was obtained: it was configured, or was started in a Docker engine or on the
 * machine's own Java.
 */
export type KafkaRuntime = 'configured' | 'docker' | 'java'

/** A Kafka that answers. `stop` ends it only if `startKafka` has started it. */
export type RunningKafka = {
  /** Addresses for clients, each `host:port`. */
  brokers: string[]
  way: KafkaRuntime
  /** A line of text for people: the way in which the Kafka was obtained, and where it runs. */
  describe: string
  /** The brokers one by one, for tests of faults. Set only if Kafka was started on Java. */
  nodes?: KafkaNode[]
  stop(): Promise<void>
}

/** A broker (and controller) of a cluster. Its port and its data stay the same when it starts again. */
export type KafkaNode = {
  readonly id: number
  readonly port: number
  /** The pid of the Java process; `undefined` while it doesn't run. */
  readonly pid: number | undefined
  /** Sends the signal, and resolves once the process has ended. Does nothing if the broker doesn't run. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /**
   * Starts the broker, and resolves once it is part of the cluster again. In a cluster of three, this needs
   * two running brokers.
   */
  start(): Promise<void>
}

/** The receiver of progress messages, one line at a time. */
export type Report = (line: string) => void

/** The plan of a Kafka to start. */
export type ClusterPlan = {
  count: 1 | 3
  heapMb: number
  /** Folder that keeps the data between starts; `undefined`: a temporary folder, removed at the stop. */
  dataDir: string | undefined
  /** Preferred port of the first broker. */
  port: number | undefined
  report: Report
}

/**
 * The availability of a way on this machine. `reason` is half a sentence for the person who has to install
 * something.
 */
export type Availability = { ok: true } | { ok: false; reason: string }
