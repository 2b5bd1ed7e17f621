import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type SenderProcess, startSender } from '../support/sender-process.ts'
import { sluiceMain } from '../support/topics.ts'
import type { MeasuredSender } from '../support/turns.ts'
import { processesVariable, sharedSecret } from '../support/worker-variables.ts'
import { destinations, inFlight, type Place, type Setting } from './setting.ts'

/**
 * What is compared. `signing` is the floor that writes canonical bodies and signs them, `unguarded` is a worker without its guards, `processes` one of several processes, `crowded` one of a single
 * process on a machine that computes as much beside it as the other processes would, `dispatches` so many processes of bare
 * dispatch. `unlogged` is a worker without the delivery log, `answers` one that keeps answers in it and has the source of notices.
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

/** How a worker is run. */
export type WorkerOptions = { profileDir: string | undefined; processes: number }

/** How to run a sender once in a setting; each run reads the topic in a consumer group of its own. */
export function senderFor(
  name: SenderName,
  setting: Setting,
  { receiver, folder, variables, trust }: Place,
  { profileDir, processes }: WorkerOptions,
): MeasuredSender {
  const { brokers, topic, messages } = setting
  const outputFile = join(folder, `${name}.log`)
  const group = `${topic}-${name}-${randomBytes(4).toString('hex')}`
  /** One that doesn't sign, and writes nothing as long as all is well. */
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

/** The log is part of what is measured, so it has to be there: one line an attempt. */
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
