import { Kafka, logLevel } from 'kafkajs'

/** Returns a client that has the default settings of the library and logs nothing. */
export function plainKafka(brokers: readonly string[]): Kafka {
  silenceTimerWarnings()
  return new Kafka({ brokers: [...brokers], clientId: 'bench', logLevel: logLevel.NOTHING })
}

let isSilenced = false

/**
 * Suppresses Node's warning about timers in the past, which kafkajs 2.2.4 sets. All other warnings are still
 * printed.
 */
function silenceTimerWarnings(): void {
  if (isSilenced) return
  isSilenced = true
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] !== 'TimeoutNegativeWarning') Reflect.apply(emitWarning, process, [warning, ...rest])
  }
}
