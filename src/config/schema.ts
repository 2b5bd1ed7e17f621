import { adminKeys } from './admin-keys.ts'
import { deliveryKeys } from './delivery-keys.ts'
import { deliveryLogKeys } from './delivery-log-keys.ts'
import { gatewayKeys } from './gateway-keys.ts'
import { kafkaKeys } from './kafka-keys.ts'
import { boolean, bytes, choice, duration, integer, integerOr, optionalText, text, type Key } from './key.ts'
import { noticesKeys } from './notices-keys.ts'
import { isPlainUrl } from './plain-url.ts'
import { retryKeys } from './retry-keys.ts'
import { topicsKeys } from './topics-keys.ts'
import { SECOND, MINUTE, HOUR, KIB, MIB } from './durations-and-sizes.ts'

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
        'The number of processes of `sluice worker`. Each is a member of the group. `auto`: one for each CPU that may be used, but no more than there are partitions.',
    }),
  },
  admin: adminKeys,
  gateway: gatewayKeys,
  catalog: {
    file: text({
      default: 'catalog.yaml',
      description:
        'Sources and destinations, as YAML or JSON. Sluice reads JSON ten times as fast, so use it for more than a thousand destinations. Edits are live within a second, plus the time to read the file. A faulty edit is refused as a whole.',
    }),
  },
  message: {
    maxBytes: bytes({
      default: MIB,
      min: KIB,
      max: 16 * MIB,
      description:
        'The largest message: its key and its value, also in canonical form. A larger message becomes a dead letter. Run `sluice topics apply` after a change: the retry topics need room for the message and its headers.',
    }),
    maxDepth: integer({
      default: 100,
      min: 10,
      max: 1_000,
      description: 'The most levels of nested objects and arrays in a message.',
    }),
    maxKeys: integer({
      default: 10_000,
      min: 100,
      max: 1_000_000,
      description: 'The most keys in all objects of a message together.',
    }),
  },
  repeats: {
    window: duration({
      default: 24 * HOUR,
      min: 0,
      max: 24 * HOUR,
      description:
        'If a source sends the same messageId again within this time, the repeated message is dropped. 0: no message is dropped.',
    }),
    messages: integer({
      default: 1_000_000,
      min: 1,
      max: 50_000_000,
      description:
        'How many messages each process remembers to recognize repeats. Beyond this number the oldest message is forgotten. Each message takes 36 to 40 bytes. A process reserves the memory at its start, and uses all of it soon after its first messages.',
    }),
  },
  state: {
    folder: optionalText({
      description:
        'The folder for the state of audiences, which is a cache of the topic memberships. If the folder is lost, the worker reads the topic again. To avoid this, put the folder on a volume that stays with the pod. Not set: a new folder in the temporary folder of the system.',
    }),
  },
  audiences: {
    syncTimeout: duration({
      default: 10 * MINUTE,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'How long after the first part of a sync its other parts may arrive in a partition. After that, the whole sync is refused there, and no user leaves the audience.',
    }),
    firstSync: boolean({
      default: true,
      description:
        'Whether a destination that is connected to an audience space later gets all of its present members. `false`: the destination gets only changes, and is marked as needing a backfill.',
    }),
    firstSyncRate: integer({
      default: 200,
      min: 1,
      max: 100_000,
      description:
        'The most members a second that a destination gets in its first sync, from all workers together. The `rateLimit` of the destination applies too.',
    }),
  },
  registry: {
    url: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description:
        'The schema registry (Confluent API) for framed values. Not set: a framed value becomes a dead letter.',
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
        'How long the registry may take to answer. Partitions that need the answer wait, and Sluice asks again.',
    }),
  },
  ...retryKeys,
  ...deliveryKeys,
  http: {
    host: text({
      default: '0.0.0.0',
      description:
        'The address that metrics and probes listen on. `::` is every address of the machine, including those of IPv4.',
    }),
    port: integer({
      default: 9400,
      min: 0,
      max: 65_535,
      description: 'The port that metrics and probes listen on; 0 picks a free one.',
    }),
  },
  shutdown: {
    timeout: duration({
      default: 10 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description:
        'How long a stopping process waits for requests in flight. Deliveries that take longer are repeated, not lost.',
    }),
  },
  log: {
    level: choice({
      values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      default: 'info',
      description: 'The least severe log lines to write.',
    }),
    attempts: boolean({
      default: true,
      description:
        'Write one log line for each attempt of a delivery. `false`: only for timeouts, for refused certificates and addresses, and if no file can be opened, at most one line a second for each hook. Dead letters then also have at most one line a second for each reason and destination.',
    }),
  },
  ...deliveryLogKeys,
  ...noticesKeys,
  metrics: {
    perDestination: boolean({
      default: false,
      description:
        'Label metrics by destination. The number of series then grows with the number of destinations. The series of a removed destination end a day later.',
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
