import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type SenderProcess, startSender } from '../support/sender-process.ts'
import { sluiceMain } from '../support/topics.ts'
import type { MeasuredSender } from '../support/turns.ts'
import { processesVariable, sharedSecret } from '../support/worker-variables.ts'
import { destinations, inFlight, type Place, type Setting } from './setting.ts'

/**
 * The names of the compared senders:
 * - `dispatch` is undici alone. `dispatches` is several such processes.
 * - `floor` is kafkajs and undici. `signing` also makes canonical bodies and signatures.
 * - `worker` is a worker. `unguarded` is a worker without its guards (`without-guards.ts`).
 * - `unlogged` is a worker without the delivery log.
 * - `answers` is a worker that keeps answers in the delivery log. Its catalog has the source of notices.
 * - `processes` is a worker with several processes.
 * - `crowded` is a worker with one process. Other processes, which only compute (`crowd.ts`), run at the same
 *   time, so that the number of processes is the same as for `processes`.
 */
export type SenderName =
  | 'dispatch'
  | 'dispatches'
  | 'floor'
  | 'signing'
  | 'worker'
  | 'unguarded'
  | 'unlogged'
  | 'answers'
  | 'crowded'
  | 'processes'

export type WorkerOptions = { profileDir: string | undefined; processes: number }

/** Returns a sender for one run. Each run reads the topic in a new consumer group. */
export function senderFor(
  name: SenderName,
  setting: Setting,
  { receiver, folder, variables, trust }: Place,
  { profileDir, processes }: WorkerOptions,
): MeasuredSender {
  const { brokers, topic, messages } = setting
  const outputFile = join(folder, `${name}.log`)
  const group = `${topic}-${name}-${randomBytes(4).toString('hex')}`
  /**
   * Returns a sender that isn't a worker. It signs only if there is a secret. Any output of it is an error.
   */
  const bare = (args: readonly string[], secret?: string): MeasuredSender => ({
    name,
    receiver,
    start: () => startSender(args, { outputFile, variables: trust }),
    secret,
    faultOf: async (sender) => (sender.output() === '' ? undefined : 'it complained'),
  })
  const load = [String(messages), String(inFlight), String(destinations)]
  const floorArguments = [brokers.join(','), topic, group, receiver.origin, String(inFlight)]
  switch (name) {
    case 'dispatch':
      return bare([scriptOf(name), receiver.origin, '0', ...load])
    case 'dispatches':
      return bare([scriptOf('dispatch-processes'), String(processes), receiver.origin, ...load])
    case 'floor':
      return bare([scriptOf(name), ...floorArguments])
    case 'signing':
      return bare([scriptOf('floor'), ...floorArguments, sharedSecret], sharedSecret)
    case 'worker':
    case 'unguarded':
    case 'unlogged':
    case 'answers':
    case 'crowded':
    case 'processes': {
      const flags = [
        ...(profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`]),
        ...(name === 'unguarded' ? ['--import', scriptOf('without-guards')] : []),
      ]
      const own = {
        SLUICE_KAFKA_GROUP_ID: group,
        ...(name === 'processes' && processesVariable(processes)),
        ...(name === 'unlogged' && { SLUICE_ATTEMPTS_ENABLED: 'false' }),
        ...(name === 'answers' && { SLUICE_ATTEMPTS_ANSWERS: 'true' }),
      }
      const options = { outputFile, variables: { ...variables, ...trust, ...own } }
      return {
        name,
        receiver,
        start: () => startSender([...flags, sluiceMain, 'worker'], options),
        ...(name === 'crowded' && { startBeside: () => startCrowd(processes - 1, folder) }),
        secret: sharedSecret,
        faultOf: (...ended) => workerFault(setting, ...ended),
      }
    }
  }
}

function startCrowd(count: number, folder: string): SenderProcess[] {
  return Array.from({ length: count }, (_, number) =>
    startSender([scriptOf('crowd')], { outputFile: join(folder, `crowd-${number}.log`) }),
  )
}

function scriptOf(name: string): string {
  return join(import.meta.dirname, `${name}.ts`)
}

/**
 * Returns the fault of a worker that has ended, or `undefined`. Its log must have one line for each attempt,
 * because the cost of the log is part of the measurement.
 */
async function workerFault(
  setting: Setting,
  sender: SenderProcess,
  exitCode: number | null,
  deliveries: number,
): Promise<string | undefined> {
  if (exitCode !== 0) return `it ended with exit code ${exitCode}`
  const written = await setting.countWritten()
  if (written > 0) return `${written} deliveries went to the retry topics or the dead letters`
  const attempts = sender.output().split('"msg":"attempt"').length - 1
  return attempts === deliveries ? undefined : `${deliveries} deliveries, and ${attempts} attempts in its log`
}
