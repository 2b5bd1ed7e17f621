import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ExtraPlan, JavaNode } from '../../src/development/broker-node.ts'
import { findClassArchive } from '../../src/development/class-archive.ts'
import { newClusterId } from '../../src/development/data-folder.ts'
import { ensureJars, kafkaVersion } from '../../src/development/jars.ts'
import { freePorts } from '../../src/development/free-ports.ts'

/** Kafka brokers (on Java) that only the calling test uses. `stop` kills them and deletes their data. */
export type OwnBrokers = {
  nodes: readonly JavaNode[]
  /** The address (`host:port`) of each broker's plain listener, for the test itself. */
  direct: string[]
  stop(): Promise<void>
}

/**
 * Starts a cluster of one or three brokers. `extraOf` may give a broker more listeners than the plain one.
 */
export async function startOwnBrokers({
  count,
  version = kafkaVersion,
  extraOf = () => ({ listeners: [] }),
}: {
  count: 1 | 3
  version?: string
  /** Returns the additional settings of the broker with this id. Ids start at 1. */
  extraOf?: (id: number) => ExtraPlan
}): Promise<OwnBrokers> {
  const jars = await ensureJars((line) => process.stderr.write(`kafka: ${line}\n`), version)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  const ids = Array.from({ length: count }, (_, index) => index + 1)
  const ports = await freePorts(2 * count)
  const controllerOf = (id: number): number => ports[count + id - 1] ?? 0
  const clusterId = newClusterId()
  const classArchive = await findClassArchive(jars)
  const nodes = ids.map(
    (id) =>
      new JavaNode({
        id,
        count,
        folder: join(folder, `broker-${id}`),
        ports: { client: ports[id - 1] ?? 0, controller: controllerOf(id) },
        voters: ids.map((voter) => `${voter}@127.0.0.1:${controllerOf(voter)}`),
        clusterId,
        jars,
        classArchive,
        heapMb: 256,
        scratch: folder,
        extra: extraOf(id),
      }),
  )
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.kill('SIGKILL')))
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    await Promise.all(nodes.map((node) => node.prepare()))
    await Promise.all(nodes.map((node) => node.start()))
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, direct: nodes.map(({ address }) => address), stop }
}
