import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JavaNode } from '../../src/development/broker-node.ts'
import { newClusterId } from '../../src/development/data-folder.ts'
import { ensureJars } from '../../src/development/jars.ts'
import { freePorts } from '../../src/development/ports.ts'
import type { Proxy, Toxiproxy } from './toxiproxy.ts'

/** A broker that can be reached in two ways: by itself, and through a proxy that faults can be put on. */
export type ProxiedKafka = {
  /** `host:port` of the broker itself. */
  direct: string
  /** `host:port` of the proxy. Who begins there stays behind it: the broker tells it that address. */
  proxied: string
  proxy: Proxy
  stop(): Promise<void>
}

/** Starts a broker on Java with a proxy in front of its second port. */
export async function startProxiedKafka(toxiproxy: Toxiproxy): Promise<ProxiedKafka> {
  const jars = await ensureJars((line) => process.stderr.write(`kafka: ${line}\n`))
  const folder = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  const [client = 0, controller = 0, behind = 0] = await freePorts(3)
  const proxy = await toxiproxy.proxy('kafka', behind)
  const node = new JavaNode({
    id: 1,
    count: 1,
    folder,
    ports: { client, controller },
    voters: [`1@127.0.0.1:${controller}`],
    clusterId: newClusterId(),
    jars,
    heapMb: 256,
    scratch: folder,
    proxied: { port: behind, advertised: proxy.port },
  })
  const stop = async (): Promise<void> => {
    await node.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    await node.prepare()
    await node.start()
  } catch (error) {
    await stop()
    throw error
  }
  return { direct: node.address, proxied: `127.0.0.1:${proxy.port}`, proxy, stop }
}
