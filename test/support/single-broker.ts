import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ExtraPlan, JavaNode } from '../../src/development/broker-node.ts'
import { newClusterId } from '../../src/development/data-folder.ts'
import { ensureJars, kafkaVersion } from '../../src/development/jars.ts'
import { freePorts } from '../../src/development/ports.ts'

/** A broker of one's own, on Java. */
export type SingleBroker = {
  /** `host:port` of its plain listener, for the test itself. */
  direct: string
  stop(): Promise<void>
}

/** Starts one, of `version`, with more ways in than the plain one. */
export async function startSingleBroker({
  version = kafkaVersion,
  extra = { listeners: [] },
}: {
  version?: string
  extra?: ExtraPlan
}): Promise<SingleBroker> {
  const jars = await ensureJars((line) => process.stderr.write(`kafka: ${line}\n`), version)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  const [client = 0, controller = 0] = await freePorts(2)
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
    extra,
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
  return { direct: node.address, stop }
}
