import { Kafka, logLevel } from 'kafkajs'

/** A client with the library's own settings, that logs nothing. */
export function plainKafka(brokers: readonly string[]): Kafka {
  silenceTimerWarnings()
  return new Kafka({ brokers: [...brokers], clientId: 'bench', logLevel: logLevel.NOTHING })
}

let isSilenced = false

/** kafkajs 2.2.4 sets timers in the past, for which Node prints a warning. Only that one is left out. */
function silenceTimerWarnings(): void {
  if (isSilenced) return
  isSilenced = true
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] !== 'TimeoutNegativeWarning') Reflect.apply(emitWarning, process, [warning, ...rest])
  }
}
