import type { ExtraListener } from '../../src/development/broker-node.ts'
import { freePorts } from '../../src/development/free-ports.ts'
import { type OwnBrokers, startOwnBrokers } from './own-brokers.ts'
import type { Proxy, Toxiproxy } from './toxiproxy.ts'

/** Brokers that can be reached in two ways: by themselves, and each through a proxy that faults can be put on. */
export type ProxiedKafka = OwnBrokers & {
  /** `host:port` of each proxy. Who begins there stays behind them: the brokers tell it these addresses. */
  proxied: string[]
  /** By the broker's id. */
  proxyOf(id: number): Proxy
}

/** Starts brokers on Java with a proxy in front of each one's second port. */
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
