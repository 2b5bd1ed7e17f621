/** A folder of `src`, for the import map and for `docs/architecture.md`. */
export type Folder = {
  /** One line about the folder, for a newcomer. */
  readonly about: string
  /** The folders that this folder may import from. Imports form no cycle. */
  readonly imports: readonly string[]
  /** `true` if the folder's code opens no socket, uses no file and doesn't ask the system for the time. */
  readonly isPure?: true
  /** Packages that no other folder may import. `@scope` stands for all packages of the scope. */
  readonly packages?: readonly string[]
}

/** The folders of the parts. A folder may import only the folders and packages that its entry names. */
const parts: Readonly<Record<string, Folder>> = {
  message: {
    about: "a message's canonical form, limits, schemas and partition; the record that it came with",
    imports: [],
    isPure: true,
  },
  routing: { about: 'source and message → deliveries', imports: ['message'], isPure: true },
  retry: {
    about: "the ladder of waits, and a delivery's state in the headers of its record",
    imports: ['message'],
    isPure: true,
  },
  pacing: { about: 'token buckets: rates of sources, destinations and syncs', imports: [], isPure: true },
  queues: {
    about: 'queues in memory: a simple FIFO queue, and queues of records to write, one for each partition',
    imports: [],
  },
  repeats: { about: 'recognizes messages that came before', imports: [], isPure: true },
  address: { about: 'decides which addresses are public or allowed', imports: [], isPure: true },
  secrets: {
    about: 'finds the secrets of a request in an answer, and masks them',
    imports: [],
    isPure: true,
  },
  http: {
    about:
      'loads `node:http` at little cost; reads answers up to a size limit; limits what clients of a server can make it hold',
    imports: [],
  },
  config: {
    about: 'one table of settings; the one reader of the environment',
    imports: ['catalog', 'retry'],
  },
  catalog: {
    about: 'sources and destinations: a file, its rules, and a live view',
    imports: ['address', 'message', 'retry'],
  },
  delivery: {
    about: 'lanes, breakers, connections, deadlines, names, proxy, signatures, verdicts',
    imports: ['address', 'catalog', 'pacing', 'queues', 'secrets'],
    packages: ['undici'],
  },
  gateway: {
    about: "Segment's tracking API over HTTP, and the outbox to Kafka",
    imports: ['address', 'audience', 'catalog', 'http', 'message', 'pacing', 'queues'],
  },
  audience: {
    about: "changes, syncs and deletions → a unit's state and its store",
    imports: ['message', 'queues'],
    packages: ['classic-level', 'change-case'],
  },
  upstream: {
    about: 'the files that `sluice audience sync` and `change` read, and the records that they write',
    imports: ['audience', 'message'],
    packages: ['csv-parse'],
  },
  backfill: {
    about: 'first syncs, backfills, and the marks of destinations that lack values',
    imports: ['audience', 'pacing', 'retry', 'upstream'],
  },
  growth: {
    about: 'takes an installation to more partitions',
    imports: ['audience', 'backfill', 'message', 'retry'],
    isPure: true,
  },
  replay: {
    about: 'decides which records are sent again and which process does it, and keeps the progress',
    imports: ['message', 'pacing', 'retry', 'routing', 'upstream'],
  },
  admin: { about: 'the admin API: its routes, their document, tokens', imports: ['delivery-log', 'http'] },
  kafka: {
    about: 'group member, fetches, watermark, commits, produces, topics, logins, rights',
    imports: ['http', 'queues', 'secrets'],
    packages: ['kafkajs', 'aws-msk-iam-sasl-signer-js', 'snappy', 'lz4-napi'],
  },
  registry: {
    about: 'values that begin with a schema id → plain JSON, by the schemas of a registry',
    imports: ['http', 'message', 'queues'],
    packages: ['@kafkajs/confluent-schema-registry', 'ajv'],
  },
  pipeline: {
    about: 'record → deliveries → attempts → settlement',
    imports: ['message', 'routing', 'retry', 'delivery', 'pacing'],
  },
  'delivery-log': {
    about: 'the delivery log: writes it to the topic `attempts`, indexes it, and answers searches',
    imports: ['delivery', 'http', 'message', 'pipeline'],
    packages: ['@clickhouse/client'],
  },
  notices: {
    about: 'notices to customers about their destinations: each worker reports, one decides',
    imports: ['delivery', 'pipeline'],
  },
  tracing: {
    about: 'spans by OpenTelemetry, if an endpoint is set',
    imports: ['config', 'delivery', 'gateway', 'message', 'pipeline', 'retry'],
    packages: ['@opentelemetry'],
  },
  telemetry: {
    about: 'the table of metrics, log lines, probes, version and commit of the build',
    imports: [
      'audience',
      'backfill',
      'delivery',
      'gateway',
      'http',
      'message',
      'notices',
      'pipeline',
      'replay',
      'retry',
    ],
    packages: ['prom-client'],
  },
  development: {
    about: 'a real Kafka for tests, the demo and `sluice up`',
    imports: [],
    packages: ['testcontainers'],
  },
}

/** All folders of `src` by name. `.` stands for `src` itself. */
export const folders: Readonly<Record<string, Folder>> = {
  ...parts,
  roles: {
    about: 'connects the parts, starts them, and stops them in reverse order',
    imports: Object.keys(parts),
  },
  commands: {
    about: 'the command line: one file for each group of commands',
    imports: ['roles', 'config', 'telemetry'],
    packages: ['commander', '@bomb.sh/tab'],
  },
  '.': { about: '`main.ts`: argv → command → role → run → exit code', imports: ['commands'] },
}
