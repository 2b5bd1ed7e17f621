/** How a Kafka was had: attached to, in a Docker engine, or on the machine's own Java. */
export type KafkaRuntime = 'configured' | 'docker' | 'java'

/** A Kafka that answers. `stop` ends what was started here, and nothing else. */
export type RunningKafka = {
  /** `host:port` each, for clients. */
  brokers: string[]
  way: KafkaRuntime
  /** One line: which way, and where. */
  describe: string
  /** The single brokers, for tests of faults; only of the way `java`. */
  nodes?: KafkaNode[]
  stop(): Promise<void>
}

/** One broker (and controller) of a cluster. Its port and its data stay the same when it starts again. */
export type KafkaNode = {
  readonly id: number
  readonly port: number
  /** Of the Java process; undefined while it does not run. */
  readonly pid: number | undefined
  /** Sends the signal; resolves when the process is gone. Does nothing to a broker that does not run. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /**
   * Resolves when the broker is part of the cluster again. Three brokers need two of them to run for that.
   */
  start(): Promise<void>
}

/** Where progress goes, a line at a time. */
export type Report = (line: string) => void

/** What is wanted of a Kafka that is started here. */
export type ClusterPlan = {
  count: 1 | 3
  heapMb: number
  /** Kept between starts; undefined: a temporary folder, removed at the stop. */
  dataDir: string | undefined
  /** Preferred for the first broker. */
  port: number | undefined
  report: Report
}

/** Whether a way can be gone here; the reason is half a sentence for the one who has to install something. */
export type Availability = { ok: true } | { ok: false; reason: string }
