import { readFieldPath } from '../message/field-path.ts'
import {
  boolean,
  bytes,
  duration,
  integer,
  optionalText,
  text,
  texts,
  isPlainUrl,
  SECOND,
  MINUTE,
  HOUR,
  KIB,
  MIB,
} from './key.ts'

/**
 * The settings of the delivery log: what is written, its index, and the ClickHouse that can replace the
 * index.
 */
export const deliveryLogKeys = {
  attempts: {
    enabled: boolean({
      default: true,
      description:
        'Whether workers write the outcome of each delivery to the topic `attempts` (docs/delivery-log.md). This never delays a delivery. If Kafka does not accept a record in time, the worker drops and counts the record.',
    }),
    retention: duration({
      default: 7 * 24 * HOUR,
      min: HOUR,
      max: 366 * 24 * HOUR,
      description:
        'How long the topic `attempts` and the index keep their records. Run `sluice topics apply` after a change.',
    }),
    successes: integer({
      default: 100,
      min: 1,
      max: 1_000_000,
      description:
        'How many deliveries that succeed at the first attempt get a record, in a second, for each URL and process. Of further deliveries in this second, only every tenth gets a record, and later only every hundredth. Each record also counts the deliveries before it that have no record. A failure always gets a record.',
    }),
    bufferBytes: bytes({
      default: 4 * MIB,
      min: 64 * KIB,
      max: 1024 * MIB,
      description:
        'The maximum number of bytes of records that wait in each process for the topic `attempts`. The process drops further records.',
    }),
    answers: boolean({
      default: false,
      description:
        'Whether the delivery log keeps the first 2 KiB of each unsuccessful answer. An answer may contain personal data. Sluice removes only the secrets of the request and the id of the user (docs/delivery-log.md). With this setting, a failed attempt ends only when 10 KiB of its answer have arrived, when the answer is complete, or when its deadline passes. Sluice reads more than 2 KiB, because a secret may begin before this limit and end after it.',
    }),
    userKey: optionalText({
      isSecret: true,
      shape: { accepts: (given) => given.length >= 16, expected: 'at least 16 characters' },
      description:
        'The key with which the delivery log hashes the ids of users. You can then search for a user, but no record says who a user is. Use the same key for all workers and for searches. If no key is set, records have no user.',
    }),
    userKeyFile: optionalText({
      description: 'A file that holds the key of `attempts.userKey`. Read at the start.',
    }),
    index: texts({
      default: [],
      item: {
        accepts: (given) => readFieldPath(given) !== undefined,
        expected: 'fields of messages such as properties.orderId',
      },
      description:
        'The fields of messages by whose values `sluice log find` and searches find a message: at most 8. A list on the way stands for each of its items. The log has a hash of each value, as of users, and needs `attempts.userKey` for it. Values of more than 256 bytes are left out, and so are all after the first 16 of a message. Update `sluice log serve` before you set it.',
    }),
  },
  index: {
    folder: text({
      default: '.sluice/log',
      description:
        'The folder in which `sluice log serve` keeps the index of the delivery log. It is a cache of the topic `attempts`. If the folder is lost, `sluice log serve` reads the topic again. If `index.url` is not set, the `sluice log` commands read this folder.',
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
      description: 'The port that the index listens on. 0 picks a free port.',
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
        'The HTTP interface of a ClickHouse that keeps the delivery log instead of `index.folder`, such as `https://clickhouse:8443`. `sluice log ddl` prints the statements for its tables (docs/delivery-log.md). If `index.url` is set too, the commands ask the index at that URL and not ClickHouse.',
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
