import type { ExtraListener } from '../../src/development/broker-node.ts'
import { freePorts } from '../../src/development/free-ports.ts'
import { type OwnBrokers, startOwnBrokers } from './own-brokers.ts'
import type { Proxy, Toxiproxy } from './toxiproxy.ts'

/**
 * Kafka brokers that can be reached in two ways. One way leads directly to a broker. The other goes through a
 * proxy for each broker, and a test can put faults on that proxy.
 */
export type ProxiedKafka = OwnBrokers & {
  /**
   * The addresses (`host:port`) of the proxies. The brokers tell these addresses to a client that starts with
   * one of them. So all its connections go through proxies.
   */
  proxied: string[]
  /** Returns the proxy of the broker with this id. */
  proxyOf(id: number): Proxy
}

/** Starts brokers (on Java), with a proxy in front of the second port of each broker. */
export async function startProxiedKafka(toxiproxy: Toxiproxy, count: 1 | 3 = 1): Promise<ProxiedKafka> {
  const behind = await freePorts(count)
  const proxies = await Promise.all(behind.map((port, index) => toxiproxy.proxy(`kafka-${index + 1}`, port)))
  const listenerOf = (id: number): ExtraListener => ({
    name: 'PROXIED',
    protocol: 'PLAINTEXT',
    port: behind[id - 1] ?? 0,
    advertised: proxies[id - 1]?.port ?? 0,
  })
  const brokers = await startOwnBrokers({ count, extraOf: (id) => ({ listeners: [listenerOf(id)] }) })
  return {
    ...brokers,
    proxied: proxies.map(({ port }) => `127.0.0.1:${port}`),
    proxyOf(id) {
      const proxy = proxies[id - 1]
      if (proxy === undefined) throw new Error(`there is no broker ${id}`)
      return proxy
    },
  }
}
