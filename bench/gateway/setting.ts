import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { stringify } from 'yaml'
import { startKafka } from '../../src/development/kafka.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { cpuUsOf } from '../support/process-family.ts'
import { startSender } from '../support/sender-process.ts'
import { applyTopics, countRecords, removeTopics, sluiceMain } from '../support/topics.ts'
import { workerVariables } from '../support/worker-variables.ts'

export type ServerName = 'bare' | 'gateway'

/** A server under measurement. */
export type Server = {
  origin: string
  /** Returns the user and system time that the server has used so far, in microseconds. */
  cpuUs(): number
  /** Stops the server with SIGTERM, as an operator would. Fails if the server ends with an error. */
  stop(): Promise<void>
}

export type Setting = {
  start(name: ServerName): Promise<Server>
  /** Returns the number of records that the gateway has written so far. */
  written(): Promise<number>
  close(): Promise<void>
}

export type SettingOptions = {
  profileDir: string | undefined
  report: (line: string) => void
  /**
   * The sources in the catalog. The first must have the write key `bench-write-key`, with which the clients
   * send.
   */
  sources?: readonly object[]
  /** Settings of the gateway, as variables. */
  variables?: Readonly<Record<string, string>>
}

const startTimeoutMs = 30_000
const pollMs = 50

/** Starts Kafka (or attaches to `KAFKA_BROKERS`), and creates the topics. */
export async function openSetting({
  profileDir,
  report,
  sources = [{ id: 'shop', writeKeys: ['bench-write-key'] }],
  variables: own = {},
}: SettingOptions): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const prefix = `bench-${randomBytes(3).toString('hex')}.`
  const kafka = await startKafka({ heapMb: 1024, report })
  const { brokers } = kafka
  const catalogFile = join(folder, 'catalog.yaml')
  writeFileSync(catalogFile, stringify({ sources, destinations: [] }))
  const variables = {
    ...workerVariables({ brokers, prefix, catalogFile }),
    SLUICE_GATEWAY_HOST: '127.0.0.1',
    SLUICE_GATEWAY_PORT: '0',
    SLUICE_GATEWAY_SHUTDOWN_DELAY: '0s',
    ...own,
  }
  const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`]
  const close = async (): Promise<void> => {
    if (kafka.way === 'configured') await removeTopics(brokers, prefix)
    await kafka.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await applyTopics(folder, variables)
  } catch (error) {
    await close()
    throw error
  }

  async function start(name: ServerName): Promise<Server> {
    const args = name === 'bare' ? [join(import.meta.dirname, 'bare.ts')] : [...flags, sluiceMain, 'gateway']
    const sender = startSender(args, { outputFile: join(folder, `${name}.log`), variables })
    const portPattern = name === 'bare' ? /^port (\d+)$/m : /"gatewayPort":(\d+)/
    const deadlineMs = performance.now() + startTimeoutMs
    for (;;) {
      const port = portPattern.exec(sender.output())?.[1]
      if (port !== undefined) {
        return {
          origin: `http://127.0.0.1:${port}`,
          cpuUs: () => cpuUsOf(sender.pid),
          async stop() {
            const exitCode = await sender.stop()
            if (exitCode !== 0) throw failure(`ended with exit code ${exitCode}`)
          },
        }
      }
      if (!sender.isRunning || performance.now() > deadlineMs) throw failure('did not start')
      await delay(pollMs)
    }
    function failure(problem: string): BenchmarkFailure {
      return new BenchmarkFailure(`${name} ${problem}:\n${sender.output().slice(-2_000)}`)
    }
  }

  return { start, written: () => countPatiently(brokers, prefix), close }
}

const countTries = 40

/**
 * Counts the records. Just after the topics were created, Kafka can't answer for a moment, so this function
 * tries again for up to 10 s.
 */
async function countPatiently(brokers: readonly string[], prefix: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      return await countRecords(brokers, prefix)
    } catch (error) {
      if (tries === countTries) throw error
      await delay(250)
    }
  }
}
