import { Option } from 'commander'
import { growYoungRoomWhenBusy, holdYoungRoom } from '../roles/start/garbage-collector.ts'
import { processCount } from '../roles/processes/process-count.ts'
import { type Role, runRole } from './command/run-role.ts'
import { type CommandTools, type Flags, writeError } from './command/tools.ts'

/** Adds `sluice up`, `sluice worker` and `sluice gateway`. */
export function addRoleCommands(tools: CommandTools): void {
  const { command, configOf, configOfUp } = tools
  command('up', 'run everything in one process; without configured brokers, with a Kafka for development', {
    shown: { catalogFile: true, kafkaBrokers: true, gatewayPort: true, adminPort: true, httpPort: true },
  }).action((flags: Flags) => {
    const { config } = configOfUp(flags)
    return runRole(
      async (options) => (await import('../roles/up.ts')).startUp({ ...options, say: writeError }),
      config,
      { isForPeople: process.stdout.isTTY },
    )
  })
  addWorker(tools)
  command('gateway', "accept messages over HTTP from Segment's clients, and write them to Kafka", {
    shown: { gatewayPort: '--port', kafkaBrokers: true, catalogFile: true, httpPort: true },
  }).action((flags: Flags) =>
    runRole(
      smallWhileIdle(async (options) => (await import('../roles/gateway.ts')).startGateway(options)),
      configOf(flags).config,
    ),
  )
}

function addWorker({ command, configOf }: CommandTools): void {
  command('worker', 'consume, deliver and retry: one member of the consumer group for each CPU', {
    shown: { workerProcesses: '--processes', kafkaBrokers: true, catalogFile: true, httpPort: true },
  })
    .addOption(new Option('--process-number <number>', 'the number of this process of the worker').hideHelp())
    .action(({ processNumber, ...flags }: Flags) => {
      const { config } = configOf(flags)
      if (processNumber !== undefined) {
        const processOf = { number: Number(processNumber), count: processCount(config) }
        return runRole(
          smallWhileIdle(async (options) =>
            (await import('../roles/processes/forked-worker.ts')).startForkedWorker({
              ...options,
              processOf,
            }),
          ),
          config,
          { place: processOf.number },
        )
      }
      if (processCount(config) > 1)
        return runRole(
          smallWhileIdle(async (options) =>
            (await import('../roles/processes/processes.ts')).startProcesses(options),
          ),
          config,
          { place: 'primary' },
        )
      return runRole(
        smallWhileIdle(async (options) => (await import('../roles/worker.ts')).startWorker(options)),
        config,
      )
    })
}

/**
 * Returns a role that does the same as `role`, but gives V8's young generation little memory until the
 * process is busy. Don't use this for a role with threads of its own: the limit holds for all threads of the
 * process, and only the load of the main thread raises it.
 */
function smallWhileIdle(role: Role): Role {
  return async (options) => {
    holdYoungRoom()
    await role(options)
    options.parts.add(growYoungRoomWhenBusy())
  }
}
