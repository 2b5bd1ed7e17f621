import { adminKeys } from './admin-keys.ts'
import { deliveryKeys } from './delivery-keys.ts'
import { deliveryLogKeys } from './delivery-log-keys.ts'
import { gatewayKeys } from './gateway-keys.ts'
import { kafkaKeys } from './kafka-keys.ts'
import {
  boolean,
  bytes,
  choice,
  duration,
  integer,
  integerOr,
  optionalText,
  text,
  texts,
  type Key,
  isPlainUrl,
  SECOND,
  MINUTE,
  HOUR,
  KIB,
  MIB,
} from './key.ts'
import { readQuota } from '../catalog/labels.ts'
import { noticesKeys } from './notices-keys.ts'
import { retryKeys } from './retry-keys.ts'
import { topicsKeys } from './topics-keys.ts'

/**
 * All keys of the configuration. The environment variables, the flags, the table in `docs/configuration.md`
 * and the type `Config` are made from this table.
 */
const configTable = {
  kafka: kafkaKeys,
  topics: topicsKeys,
  worker: {
    processes: integerOr({
      default: 'auto',
      word: 'auto',
      min: 1,
      max: 256,
      description:
        'The number of processes of `sluice worker`. Each is a member of the group. `auto`: one for each CPU that the worker may use, but at most one for each partition.',
    }),
  },
  admin: adminKeys,
  gateway: gatewayKeys,
  catalog: {
    source: choice({
      default: 'file',
      values: ['file', 'topic'],
      description:
        'Where the sources and destinations are. `file`: in the file `catalog.file`. `topic`: in the topic `catalog`, where `sluice destinations`, `sluice catalog import` and the admin API change them while everything runs (docs/catalog-topic.md).',
    }),
    keysFile: optionalText({
      description:
        'The file of keys for `catalog.source=topic`. The keys sign the records of the topic, and seal the secrets in them. `sluice catalog key` makes a line of this file. All processes need the same file. The first key writes, and all keys read.',
    }),
    quotas: texts({
      default: [],
      item: {
        accepts: (given) => readQuota(given) !== undefined,
        expected: 'label:count, such as tenant:100',
      },
      description:
        'How many destinations may have the same value of a label, for `catalog.source=topic`: with `tenant:100`, each tenant has at most 100. A process that changes the catalog refuses a destination that would be one too many. Those that are there stay.',
    }),
    historyRetention: duration({
      default: 365 * 24 * HOUR,
      min: 24 * HOUR,
      max: 3_660 * 24 * HOUR,
      description:
        'How long the topic `catalog-history` keeps a change, if `catalog.source` is `topic`. A change can be undone for as long. Run `sluice topics apply` after a change of this setting.',
    }),
    file: text({
      default: 'catalog.yaml',
      description:
        'The file of sources and destinations, as YAML or JSON. Sluice reads JSON ten times as fast, so use JSON for more than a thousand destinations. An edit takes effect within a second, plus the time to read the file. If an edit has a fault, Sluice refuses the whole edit. It may also be a folder with a file for each destination: a file with a fault refuses only itself (docs/catalog.md).',
    }),
    variablesFolder: optionalText({
      description:
        'A folder with a file for each variable of the catalog, as Kubernetes mounts a Secret: the file `CATALOG_X` has the value of `${CATALOG_X}`, at most 64 KiB. A change of a file takes effect as an edit of the catalog does. A file takes precedence over the environment variable of the same name.',
    }),
  },
  message: {
    maxBytes: bytes({
      default: MIB,
      min: KIB,
      max: 16 * MIB,
      description:
        'The maximum size of a message with its key. It applies to the message as it came, and to its canonical form. A larger message becomes a dead letter. After a change, run `sluice topics apply`, because the retry topics must allow for the message and its headers.',
    }),
    maxDepth: integer({
      default: 100,
      min: 10,
      max: 1_000,
      description: 'The maximum number of levels of nested objects and arrays in a message.',
    }),
    maxKeys: integer({
      default: 10_000,
      min: 100,
      max: 1_000_000,
      description: 'The maximum number of keys in all objects of a message together.',
    }),
  },
  repeats: {
    window: duration({
      default: 24 * HOUR,
      min: 0,
      max: 24 * HOUR,
      description:
        'If a source sends the same messageId again within this time, Sluice drops the repeated message. 0: Sluice drops no message.',
    }),
    messages: integer({
      default: 1_000_000,
      min: 1,
      max: 50_000_000,
      description:
        'How many messages each process remembers to recognize repeats. When it has this number, it forgets the oldest message for each new one. Each message takes 36 to 40 bytes. A process reserves the memory at its start, and uses all of it soon after its first messages.',
    }),
    rebuildTime: duration({
      default: 5 * SECOND,
      min: 0,
      max: MINUTE,
      description:
        'How long a worker may read the end of events, when it gets a partition, to know again which messages were delivered (docs/repeats.md). New messages of the partition wait for this. 0: the worker reads nothing, and delivers repeats of what it has not seen itself.',
    }),
  },
  state: {
    folder: optionalText({
      description:
        'The folder for the state of audiences, which is a cache of the topic memberships. It also has the ids of the catalog in force, so that a restart notices if the catalog was cut off (docs/catalog.md). If the folder is lost, the worker reads the topic again. To avoid this, put the folder on a volume that stays with the pod. If this setting is empty, Sluice uses the folder sluice-state in the temporary folder of the system. No other user of the machine may be able to write to that folder.',
    }),
  },
  audiences: {
    syncTimeout: duration({
      default: 10 * MINUTE,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'How long after the first part of a sync its other parts may arrive in a partition. After this time, the worker refuses the whole sync in this partition, and no user of the partition leaves the audience.',
    }),
    firstSync: boolean({
      default: true,
      description:
        'Whether a destination gets all present members of a source of audiences if it is connected to this source later. `false`: the destination gets only changes, and metrics and notices say that it needs a backfill.',
    }),
    firstSyncRate: integer({
      default: 200,
      min: 1,
      max: 100_000,
      description:
        'The maximum number of members per second that a destination gets in its first sync, from all workers together. The `rateLimit` of the destination applies too.',
    }),
  },
  registry: {
    url: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description:
        'The schema registry (Confluent API) for framed values (docs/schema-registry.md). If this setting is empty, a framed value becomes a dead letter.',
    }),
    username: optionalText({ description: 'The user to log in to the schema registry as, or the API key.' }),
    password: optionalText({
      isSecret: true,
      description: 'The password of `registry.username`, or the API secret.',
    }),
    passwordFile: optionalText({
      description: 'A file that holds the password of `registry.username`. Read again when it changes.',
    }),
    caFile: optionalText({
      description:
        'A PEM file of certificate authorities to trust for the registry, in addition to those that Node trusts. Read again when it changes.',
    }),
    timeout: duration({
      default: 5 * SECOND,
      min: 100,
      max: MINUTE,
      description:
        'How long the registry may take to answer. After this time, Sluice asks again. Partitions that need the answer wait meanwhile.',
    }),
  },
  ...retryKeys,
  ...deliveryKeys,
  http: {
    host: text({
      default: '0.0.0.0',
      description:
        'The address of metrics and probes. `::` is every address of the machine, including those of IPv4.',
    }),
    port: integerOr({
      default: 'auto',
      word: 'auto',
      min: 0,
      max: 65_535,
      description:
        'The port of metrics and probes. `auto` is 9400. If another process of this machine listens there, it is the next free port up to 9409, and a log line names it. 0 picks any free port.',
    }),
  },
  shutdown: {
    timeout: duration({
      default: 10 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description:
        'How long a stopping process waits for requests in flight. If a delivery takes longer, it is repeated and not lost.',
    }),
  },
  log: {
    level: choice({
      values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      default: 'info',
      description: 'The lowest level of log lines that are written.',
    }),
    attempts: boolean({
      default: true,
      description:
        'Whether Sluice writes one log line for each attempt of a delivery. `false`: it writes lines only for timeouts, for refused certificates and addresses, and if no file can be opened. Then it writes at most one line a second for each URL, and at most one line a second about dead letters for each reason and destination.',
    }),
  },
  ...deliveryLogKeys,
  ...noticesKeys,
  metrics: {
    perDestination: boolean({
      default: false,
      description:
        'Whether metrics have labels for the destination. The number of series then grows with the number of destinations. The series of a removed destination end a day later.',
    }),
  },
} as const

type Table = typeof configTable

type ValueOf<K> = K extends Key<infer T, infer _> ? T : never
type SuffixOf<K> = K extends Key<infer _, infer Suffix> ? Suffix : never

/**
 * The configuration of a process. The key `kafka.brokers` is `config.kafka.brokers`. Durations are in
 * milliseconds, and their names end with `Ms`, as in `config.delivery.timeoutMs`. The configuration holds
 * secrets (`kafka.saslPassword`), so never log it as a whole.
 */
export type Config = {
  readonly [Section in keyof Table]: {
    readonly [Name in keyof Table[Section] & string as `${Name}${SuffixOf<Table[Section][Name]>}`]: ValueOf<
      Table[Section][Name]
    >
  }
}

/** A key of the configuration, with the names that are derived from the key's name. */
export type ConfigKey = {
  /** The name of the key, such as `kafka.groupId`. */
  readonly name: string
  readonly section: string
  /** The name of the key's value in its section of `Config`, such as `groupId` or `sessionTimeoutMs`. */
  readonly property: string
  /** The environment variable, such as `SLUICE_KAFKA_GROUP_ID`. */
  readonly variable: string
  /** The flag, such as `--kafka-group-id`. Secrets have no flag. */
  readonly flag: string | undefined
  /** The name of the flag among commander's options, such as `kafkaGroupId`. */
  readonly option: string
  readonly key: Key<unknown, '' | 'Ms'>
}

/** All keys of the configuration, in the order of `configTable`. */
export const configKeys: readonly ConfigKey[] = Object.entries(configTable).flatMap(([section, keys]) =>
  Object.entries<Key<unknown, '' | 'Ms'>>(keys).map(([name, key]) => {
    const words = [section, ...name.split(/(?=[A-Z])/)].map((word) => word.toLowerCase())
    return {
      name: `${section}.${name}`,
      section,
      property: `${name}${key.suffix}`,
      variable: `SLUICE_${words.join('_').toUpperCase()}`,
      flag: key.isSecret ? undefined : `--${words.join('-')}`,
      option: `${section}${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      key,
    }
  }),
)
