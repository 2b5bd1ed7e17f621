import process from 'node:process'
import { parseArgs } from 'node:util'
import { Lifetime } from './lifetime.ts'
import { runDemo } from './run.ts'

/**
 * `npm run demo [-- --stay]`. Exit codes: 0 if every number is right, 1 if a number is wrong or the demo
 * fails, 2 for an unknown argument, 130 after Ctrl-C.
 */

const help = `Sluice's demo: Kafka, a gateway, a worker, upstream services and customers' servers, for about a minute.

  npm run demo            ends with a summary that is checked: exit code 1 if a number is wrong
  npm run demo -- --stay  stays up after it, until Ctrl-C

With KAFKA_BROKERS=host:port it uses that Kafka, with topics of its own that are removed at the end.
`

// kafkajs 2.2.4 sets timers with negative delays. Node prints a warning about each, which a user can't avoid.
const emitWarning = process.emitWarning.bind(process)
process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
  if (rest[0] === 'TimeoutNegativeWarning') return
  Reflect.apply(emitWarning, process, [warning, ...rest])
}

const wanted = readArguments()
if (wanted === undefined) process.exitCode = 2
else if (wanted.help) process.stdout.write(help)
else process.exit(await runToTheEnd(wanted.stay))

async function runToTheEnd(stay: boolean): Promise<number> {
  const lifetime = new Lifetime()
  let code = 1
  try {
    code = (await runDemo(lifetime, { stay })) ? 0 : 1
  } catch (error) {
    if (lifetime.isInterrupted) code = 130
    else {
      // After one part has failed, the parts that need it fail too. The signal's reason is the first failure.
      const reason: unknown = lifetime.signal.aborted ? lifetime.signal.reason : error
      console.error(`\nThe demo can not go on: ${reason instanceof Error ? reason.message : String(reason)}`)
    }
  }
  console.log('Stopping everything …')
  const faults = await lifetime.stop()
  for (const fault of faults) console.error(`did not stop as it should: ${fault}`)
  if (faults.length === 0) console.log('Stopped: nothing is left running.')
  return code === 0 && faults.length > 0 ? 1 : code
}

function readArguments(): { stay: boolean; help: boolean } | undefined {
  try {
    const { values } = parseArgs({
      options: {
        stay: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${help}`)
    return undefined
  }
}
