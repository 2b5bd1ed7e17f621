import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import { lastLines, startTethered } from '../../src/development/tether.ts'
import { ownGoProgram } from './go-program.ts'
import { otherProgram } from './kafka.ts'
import { until } from './until.ts'

/** A cluster of three brokers that doesn't run Apache Kafka. Its records are in memory. */
export type Kfake = {
  readonly brokers: readonly string[]
  stop(): Promise<void>
}

/**
 * Starts kfake, the implementation of Kafka's protocol that the Go client franz-go is tested with. Builds it
 * the first time. It ends at `stop`. It also ends when this process ends in any way.
 */
export async function startKfake(): Promise<Kfake> {
  const program = await ownGoProgram(join(import.meta.dirname, 'kfake'))
  const ports = await freePorts(3)
  const brokers = ports.map((port) => `127.0.0.1:${port}`)
  const folder = await mkdtemp(join(tmpdir(), 'kfake-'))
  const logFile = join(folder, 'log')
  const kfake = await startTethered(program, ports.map(String), { logFile, scratch: folder })
  const admin = otherProgram(brokers).admin()
  try {
    await until('kfake answers', async () => {
      await admin.connect()
      return true
    })
  } catch (cause) {
    throw new Error(`kfake did not start:\n${await lastLines(logFile)}`, { cause })
  } finally {
    await admin.disconnect()
  }
  return {
    brokers,
    async stop() {
      kfake.kill('SIGTERM')
      await kfake.exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}
