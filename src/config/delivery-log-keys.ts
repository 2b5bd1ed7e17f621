import { boolean, bytes, duration, integer, optionalText, text } from './key.ts'
import { isPlainUrl } from './plain-url.ts'
import { SECOND, MINUTE, HOUR, KIB, MIB } from './durations-and-sizes.ts'

/**
 * The settings of the delivery log: what is written, its index, and the ClickHouse that can replace the
 * index.
 */
export const deliveryLogKeys = {
  attempts: {
    enabled: boolean({
      default: true,
      description:
        'Write the outcome of each delivery to the topic `attempts` (docs/delivery-log.md). This never delays a delivery: records that Kafka does not accept in time are dropped and counted.',
    }),
    retention: duration({
      default: 7 * 24 * HOUR,
      min: HOUR,
      max: 366 * 24 * HOUR,
      description:
        'How long the topic `attempts` keeps its records, and the index with it. Run `sluice topics apply` after a change.',
    }),
    successes: integer({
      default: 100,
      min: 1,
      max: 1_000_000,
      description:
        'How many deliveries that succeed at once get a record of their own in a second, for each URL and process. Beyond this number only every tenth gets a record, later only every hundredth. Each record also counts the deliveries before it that have no record. Failures and ends always get a record.',
    }),
    bufferBytes: bytes({
      default: 4 * MIB,
      min: 64 * KIB,
      max: 1024 * MIB,
      description:
        'The most bytes of records that wait in each process to be written to the topic `attempts`. Beyond this number records are dropped.',
    }),
    answers: boolean({
      default: false,
      description:
        'Keep the first 2 KiB of each unsuccessful answer in the log. What a receiver writes may be about a person: Sluice cuts out the secrets of the request and the id of the user, and nothing else (docs/delivery-log.md). With this setting, a failed attempt ends only when 10 KiB of its answer have arrived (secrets may cross the limit), when the answer is complete, or when its deadline passes.',
    }),
    userKey: optionalText({
      isSecret: true,
      shape: { accepts: (given) => given.length >= 16, expected: 'at least 16 characters' },
      description:
        'The key to hash users with: a search can then find a user, but no record says who a user is. Use the same key for all workers and for searches. Not set: records have no user.',
    }),
    userKeyFile: optionalText({
      description: 'A file that holds the key of `attempts.userKey`. Read at the start.',
    }),
  },
  index: {
    folder: text({
      default: '.sluice/log',
      description:
        'Where `sluice log serve` keeps the index of the delivery log: a cache of the topic `attempts`. If the folder is lost, the topic is read again. The `sluice log` commands read the index there, unless `index.url` is set.',
    }),
    host: text({
      default: '127.0.0.1',
      description:
        'The address that the index listens on. If other machines can reach the address, `index.token` is required.',
    }),
    port: integer({
      default: 9410,
      min: 0,
      max: 65_535,
      description: 'The port that the index listens on; 0 picks a free one.',
    }),
    url: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description:
        'The URL of a running index that the `sluice log` commands ask, such as `http://127.0.0.1:9410`.',
    }),
    token: optionalText({
      isSecret: true,
      shape: { accepts: (given) => given.length >= 16, expected: 'at least 16 characters' },
      description: 'The bearer token that clients of the index must send.',
    }),
    tokenFile: optionalText({
      description: 'A file that holds the token of `index.token`. Read at the start.',
    }),
  },
  clickhouse: {
    url: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description:
        'The HTTP interface of a ClickHouse that keeps the delivery log instead of `index.folder`, such as `https://clickhouse:8443`. `sluice log ddl` prints the statements for its tables (docs/delivery-log.md). If `index.url` is set, the commands ask the index there instead.',
    }),
    user: text({ default: 'default', description: 'The user to log in to ClickHouse as.' }),
    password: optionalText({ isSecret: true, description: 'The password of `clickhouse.user`.' }),
    passwordFile: optionalText({
      description: 'A file that holds the password of `clickhouse.user`. Read again when it changes.',
    }),
    database: text({
      default: 'sluice',
      shape: {
        accepts: (given) => /^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(given),
        expected: 'up to 63 of A-Z a-z 0-9 _',
      },
      description:
        'The database of the tables. The tables are named after the topic `attempts` with its prefix, with `_` in place of each dot.',
    }),
    caFile: optionalText({
      description:
        'A PEM file of certificate authorities to trust for ClickHouse, in addition to those that Node trusts. Read at the start.',
    }),
    timeout: duration({
      default: 30 * SECOND,
      min: SECOND,
      max: 10 * MINUTE,
      description: 'How long ClickHouse may take to answer a query or to accept rows.',
    }),
  },
} as const
