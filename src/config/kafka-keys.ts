import { isIPv6 } from 'node:net'
import {
  boolean,
  bytes,
  choice,
  duration,
  optionalText,
  text,
  texts,
  isPlainUrl,
  SECOND,
  MINUTE,
  KIB,
  MIB,
} from './key.ts'

const defaultTopicPrefix = 'sluice.'
/**
 * The default consumer group for the default topic prefix. In earlier versions of Sluice, it was the default
 * group for every topic prefix.
 */
export const plainGroupId = 'sluice'

/** Returns the default consumer group for a topic prefix. Each prefix has a default group of its own. */
export function groupIdFor(topicPrefix: string): string {
  return topicPrefix === defaultTopicPrefix ? plainGroupId : `${topicPrefix}workers`
}

/** The settings of the connection to the brokers, the group and the login. */
export const kafkaKeys = {
  brokers: texts({
    default: [],
    item: { accepts: isBroker, expected: 'host:port, such as kafka-1:9092 or [::1]:9092' },
    alias: 'KAFKA_BROKERS',
    description: 'A few brokers to connect to first. The client learns the others from them.',
  }),
  groupId: text({
    default: groupIdFor(defaultTopicPrefix),
    description:
      'The consumer group of the workers. No other installation may use it. If you set another `kafka.topicPrefix`, the default is this prefix followed by `workers`: `eu.workers` for `eu.`.',
  }),
  clientId: text({
    default: 'sluice',
    description: 'The name of this client in the logs and quotas of the brokers.',
  }),
  instanceId: optionalText({
    shape: {
      accepts: (given) => /^[A-Za-z0-9._-]{1,200}$/.test(given),
      expected: 'up to 200 of A-Z a-z 0-9 . _ -',
    },
    description:
      'The name of this worker in its group (static membership). It must be unique in the group and stay the same after a restart, like the name of the pod of a StatefulSet. ' +
      'If the worker restarts within the session, no partition moves. If it stops and does not come back, the group reserves its partitions until the session is over. To prevent this, for example because an autoscaler removes pods, set `kafka.leaveOnStop`. ' +
      'If a second worker starts with the same name, the first one ends with an error. In the group, process N of a worker has the name NAME-N.',
  }),
  leaveOnStop: boolean({
    default: false,
    description:
      'Whether a worker with an instance id leaves its group when it stops gracefully. `true`: it leaves, and its partitions move to other workers at once. `false`: the group reserves its partitions, so none moves if the worker restarts within the session. A worker without an instance id always leaves.',
  }),
  topicPrefix: text({
    default: defaultTopicPrefix,
    shape: {
      accepts: (given) => /^[A-Za-z0-9._-]{0,100}$/.test(given),
      expected: 'up to 100 of A-Z a-z 0-9 . _ -',
    },
    description: 'The beginning of the name of every topic.',
  }),
  sessionTimeout: duration({
    default: 30 * SECOND,
    min: 6 * SECOND,
    max: 5 * MINUTE,
    description: 'If the group does not hear from a worker for this long, the worker loses its partitions.',
  }),
  commitInterval: duration({
    default: SECOND,
    min: 100,
    max: MINUTE,
    description:
      'How often offsets are committed. After a crash, deliveries that ended since the last commit are repeated.',
  }),
  onTruncation: choice({
    values: ['earliest', 'stop'],
    default: 'earliest',
    description:
      'What a worker does if a partition has another log than before. This happens if the topic was recreated or restored, or if a broker without all records became the leader. `earliest`: the worker reads on from the offset at which the logs differ, or from the beginning if this offset is not known. If a message is then delivered twice, both copies have the same messageId. `stop`: the worker stops reading the partition, and is not ready. To go on, set the offsets of the group, and restart the worker.',
  }),
  batchBytes: bytes({
    default: 880 * KIB,
    min: 16 * KIB,
    max: 8 * MIB,
    description:
      'The maximum number of bytes in one write to a partition. Only a single message may be larger. A smaller `max.message.bytes` of the topic takes precedence. Lower this setting if the cluster has a limit that it does not report.',
  }),
  ssl: boolean({ default: false, description: 'Connect to the brokers over TLS.' }),
  caFile: optionalText({
    description:
      'A PEM file of certificate authorities to trust for the brokers and the token endpoint, in addition to those that Node trusts. Read again when it changes.',
  }),
  certFile: optionalText({
    description:
      'A PEM file with the client certificate for the brokers (mTLS) and its intermediate certificates. Read again when it changes.',
  }),
  keyFile: optionalText({ description: 'A PEM file with the private key of the client certificate.' }),
  keyPassword: optionalText({
    description: 'The password of the private key, if it has one.',
    isSecret: true,
  }),
  keyPasswordFile: optionalText({
    description: 'A file that holds the password of the private key. Read again when it changes.',
  }),
  serverName: optionalText({
    shape: { accepts: (given) => /^[A-Za-z0-9._-]{1,253}$/.test(given), expected: 'a host name' },
    description:
      'The host name that the certificates of the brokers must have. Set it only if it differs from the host to which Sluice connects, for example behind a tunnel.',
  }),
  saslMechanism: choice({
    values: ['none', 'plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer', 'aws-iam'],
    default: 'none',
    description:
      "How to log in to the brokers. `aws-iam` is for Amazon MSK, with the credentials that AWS' own tools would find.",
  }),
  saslUsername: optionalText({
    description: 'The user to log in as, for `plain` and `scram-sha-…`.',
  }),
  saslPassword: optionalText({ description: 'The password of `kafka.saslUsername`.', isSecret: true }),
  saslPasswordFile: optionalText({
    description:
      'A file that holds the password of `kafka.saslUsername`. Read again at each login, so a new password needs no restart.',
  }),
  oauthTokenUrl: optionalText({
    shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
    description: 'The URL from which `oauthbearer` gets its tokens, with the client credentials grant.',
  }),
  oauthClientId: optionalText({ description: 'The id of the client for which Sluice gets the tokens.' }),
  oauthClientSecret: optionalText({ description: 'The secret of `kafka.oauthClientId`.', isSecret: true }),
  oauthClientSecretFile: optionalText({
    description: 'A file that holds the secret of `kafka.oauthClientId`. Read again for each token.',
  }),
  oauthScope: optionalText({ description: 'The scope to ask for, if the token endpoint requires one.' }),
  oauthAudience: optionalText({
    description: 'The audience to ask for, if the token endpoint requires one.',
  }),
  oauthExtensions: texts({
    default: [],
    item: { accepts: isExtension, expected: 'name=value' },
    description:
      'SASL extensions to send with the token. Confluent Cloud requires `logicalCluster=lkc-…,identityPoolId=pool-…`.',
  }),
  awsRegion: optionalText({
    shape: {
      accepts: (given) => /^[a-z0-9-]{1,40}$/.test(given),
      expected: 'a region such as eu-central-1',
    },
    description: 'The region of the cluster, for `aws-iam`.',
  }),
} as const

/** Returns true for an extension of a SASL OAUTHBEARER message. Source: RFC 7628, section 3.1. */
function isExtension(item: string): boolean {
  return /^[A-Za-z]+=[\x20-\x7e]+$/.test(item) && !item.startsWith('auth=')
}

/** Returns true for a broker's address: a name or an IP address, and a port. IPv6 is in brackets. */
function isBroker(item: string): boolean {
  const [, name = '', ipv6, port] = /^([A-Za-z0-9._-]+|\[([^\]]+)\]):(\d{1,5})$/.exec(item) ?? []
  const isHost = ipv6 === undefined ? name !== '' : isIPv6(ipv6)
  return isHost && Number(port) >= 1 && Number(port) <= 65_535
}
