import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import { startKafka } from '../development/kafka.ts'
import { applyTopicTable } from './topics.ts'
import { startWorker, type Worker } from './worker.ts'

export type UpOptions = {
  config: Config
  log: Logger
  onFatal: (error: Error) => void
  /** For the person at the terminal. */
  say: (line: string) => void
}

const dataDir = '.sluice/kafka'
const loopback = ['127.0.0.0/8', '::1/128']

/**
 * Everything in one process. Without configured brokers it starts a Kafka for development, whose data stays
 * in `.sluice/kafka` between starts, with one replica, and URLs on this machine are allowed.
 */
export async function startUp({ config, log, onFatal, say }: UpOptions): Promise<Worker> {
  if (config.kafka.brokers.length > 0) {
    await applyTopicTable(config, log)
    return startWorker({ config, log, onFatal })
  }
  const kafka = await startKafka({ brokers: [], dataDir, port: 9092, report: say })
  const development: Config = {
    ...config,
    kafka: { ...config.kafka, brokers: kafka.brokers },
    topics: { ...config.topics, development: true },
    delivery: { ...config.delivery, allowAddresses: [...config.delivery.allowAddresses, ...loopback] },
  }
  try {
    for (const line of await applyTopicTable(development, log)) say(`topics: ${line}`)
    const worker = await startWorker({ config: development, log, onFatal })
    for (const line of developmentNotice(kafka.brokers, worker.httpPort)) say(line)
    return {
      ...worker,
      async stop() {
        await worker.stop()
        await kafka.stop()
      },
    }
  } catch (error) {
    await kafka.stop()
    throw error
  }
}

function developmentNotice(brokers: readonly string[], httpPort: number): string[] {
  return [
    '',
    'This is for development: one broker, one replica, and URLs on this machine (127.0.0.0/8, ::1) are allowed.',
    `  Kafka    ${brokers.join(',')}   data in ${dataDir}`,
    `  metrics  http://127.0.0.1:${httpPort}/metrics`,
    `  try      KAFKA_BROKERS=${brokers.join(',')} npx sluice send --source SOURCE '{"type":"track","userId":"u1","event":"Hello"}'`,
    'Ctrl-C stops it.',
    '',
  ]
}
