import { freePorts } from '../../src/development/ports.ts'
import { type SingleBroker, startSingleBroker } from './single-broker.ts'
import type { Proxy, Toxiproxy } from './toxiproxy.ts'

/** A broker that can be reached in two ways: by itself, and through a proxy that faults can be put on. */
export type ProxiedKafka = SingleBroker & {
  /** `host:port` of the proxy. Who begins there stays behind it: the broker tells it that address. */
  proxied: string
  proxy: Proxy
}

/** Starts a broker on Java with a proxy in front of its second port. */
export async function startProxiedKafka(toxiproxy: Toxiproxy): Promise<ProxiedKafka> {
  const [behind = 0] = await freePorts(1)
  const proxy = await toxiproxy.proxy('kafka', behind)
  const listener = { name: 'PROXIED', protocol: 'PLAINTEXT', port: behind, advertised: proxy.port } as const
  const broker = await startSingleBroker({ extra: { listeners: [listener] } })
  return { ...broker, proxied: `127.0.0.1:${proxy.port}`, proxy }
}
