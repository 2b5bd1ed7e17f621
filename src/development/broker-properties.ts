/**
 * The place of one broker in its cluster. `advertised` are the addresses that the broker reports to its
 * clients.
 */
export type BrokerPlace = {
  id: number
  count: 1 | 3
  /** All controllers of the cluster, each as `id@host:port`. */
  voters: readonly string[]
  listeners: readonly string[]
  advertised: readonly string[]
  /** Protocols of additional listeners, by the name of the listener. */
  protocols?: Readonly<Record<string, string>>
  interBroker: string
  logDir: string
}

/**
 * Returns the settings of one node, which is both broker and controller. They are for development and tests:
 * they need little memory, and let groups form quickly. Three nodes keep three replicas of each partition,
 * and accept a write once two replicas have it. One node keeps one replica.
 */
export function brokerProperties(place: BrokerPlace): Record<string, string> {
  return { ...placeProperties(place), ...replicationProperties(place.count), ...sizes }
}

function placeProperties(place: BrokerPlace): Record<string, string> {
  return {
    'process.roles': 'broker,controller',
    'node.id': String(place.id),
    'controller.quorum.voters': place.voters.join(','),
    'controller.listener.names': 'CONTROLLER',
    listeners: place.listeners.join(','),
    'advertised.listeners': place.advertised.join(','),
    'listener.security.protocol.map': Object.entries({ ...usualProtocols, ...place.protocols })
      .map(([name, protocol]) => `${name}:${protocol}`)
      .join(','),
    'inter.broker.listener.name': place.interBroker,
    'log.dirs': place.logDir,
  }
}

const usualProtocols = { PLAINTEXT: 'PLAINTEXT', INTERNAL: 'PLAINTEXT', CONTROLLER: 'PLAINTEXT' }

function replicationProperties(count: 1 | 3): Record<string, string> {
  const replicas = String(count)
  const minInsync = count === 3 ? '2' : '1'
  return {
    'default.replication.factor': replicas,
    'min.insync.replicas': minInsync,
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': minInsync,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': minInsync,
  }
}

const sizes: Readonly<Record<string, string>> = {
  'offsets.topic.num.partitions': '4',
  'transaction.state.log.num.partitions': '4',
  'share.coordinator.state.topic.num.partitions': '1',
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '1000',
  // Topics aren't created automatically, so that tests fail if a topic is missing.
  'auto.create.topics.enable': 'false',
  'num.network.threads': '2',
  'num.io.threads': '2',
  'log.cleaner.threads': '1',
  'log.cleaner.dedupe.buffer.size': '4194304',
  'num.recovery.threads.per.data.dir': '1',
}

/** Formats settings as the text of a `server.properties` file. */
export function renderProperties(properties: Readonly<Record<string, string>>): string {
  const lines = Object.entries(properties).map(
    ([name, value]) => `${name}=${value.replaceAll('\\', '\\\\')}\n`,
  )
  return lines.join('')
}

/**
 * Formats settings as the environment of the `apache/kafka` image. No name of these settings has an
 * underscore or a dash, so the name of each variable can be turned back into the name of its setting.
 */
export function renderEnvironment(properties: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [
      `KAFKA_${name.toUpperCase().replaceAll('.', '_')}`,
      value,
    ]),
  )
}
