import completion from '@bomb.sh/tab/commander'
import { Command, CommanderError } from 'commander'
import { StartError, WrongUseError } from '../roles/start/start-error.ts'
import { buildInfo, describeBuild } from '../telemetry/build-info.ts'
import { addAdminCommands } from './admin-commands.ts'
import { addAudienceCommands } from './audience/audience-commands.ts'
import { addApplyCommand, addCatalogCommands } from './catalog/catalog-commands.ts'
import { addConfigCommand } from './config-command.ts'
import { addConsoleCommand } from './console-command.ts'
import { addDestinationCommands } from './destinations/destination-commands.ts'
import { addFilterCommands } from './filter/filter-commands.ts'
import { addImportCommands } from './import-command.ts'
import { addLogCommands } from './log/log-commands.ts'
import { addListenCommand } from './listen/listen-command.ts'
import { addMappingsCommands } from './mappings/mappings-commands.ts'
import { addReplayCommands } from './replay/replay-commands.ts'
import { addRoleCommands } from './role-commands.ts'
import { addRunbookCommand } from './runbook-command.ts'
import { addSendCommand } from './send-command.ts'
import { withPages } from './command/pages.ts'
import { findNamed, refuseCommand, withSuggestion } from './command/suggestions.ts'
import { addMakeUserKeyCommand } from './make-user-key-command.ts'
import { addSigningKeyCommand } from './signing-key-command.ts'
import { completeIds } from './complete-ids.ts'
import { addStatusCommand } from './status-command.ts'
import { createTools, type Surroundings, writeError } from './command/tools.ts'
import { addTokenCommands } from './token-commands.ts'
import { addSourceCommands } from './sources/source-commands.ts'
import { addTriggerCommand } from './trigger-command.ts'
import { addTopicCommands } from './topics/topic-commands.ts'

/**
 * Runs the command that the arguments of the process name, and sets the exit code if the command fails. A
 * command imports its role only when it runs. So help and completion load no role.
 */
export async function runCommand(surroundings: Surroundings): Promise<void> {
  const args = process.argv.slice(2)
  const help: string[] = []
  const program = createProgram(args, help)
  const tools = createTools(program, surroundings)
  // Help lists the commands in this order.
  addRoleCommands(tools)
  addStatusCommand(tools)
  addLogCommands(tools)
  addListenCommand(tools)
  addTriggerCommand(tools)
  addRunbookCommand(tools)
  addTopicCommands(tools)
  addCatalogCommands(tools)
  addApplyCommand(tools)
  addSendCommand(tools)
  addAudienceCommands(tools)
  addReplayCommands(tools)
  addSourceCommands(tools)
  addDestinationCommands(tools)
  addFilterCommands(tools)
  addImportCommands(tools)
  addMappingsCommands(tools)
  addSigningKeyCommand(tools)
  addMakeUserKeyCommand(tools)
  addAdminCommands(tools)
  addConsoleCommand(tools)
  addTokenCommands(tools)
  addConfigCommand(tools)
  const completed = completion(program, { completionCommandName: 'completion' })
  try {
    if (args[0] === 'complete' && args[1] === '--')
      await completeIds(completed, args.slice(2), () => tools.configOf({}).config)
    answerNames(program, args)
    await program.parseAsync()
  } catch (error) {
    process.exitCode = tellFailure(error)
  }
  // Below the last part, so that each page is named once.
  if (help.length > 0) process.stdout.write(`${withPages(help.join('')).trimEnd()}\n`)
}

/**
 * Refuses an unknown command, and shows the help that `help` asks for. Commander ignores unknown names that
 * follow `help` or come with `--help`, and shows the help of the command above.
 */
function answerNames(program: Command, args: readonly string[]): void {
  const { found, unknown, isHelp } = findNamed(program, args)
  if (unknown !== undefined) refuseCommand(found, unknown)
  if (isHelp) found.help()
}

/** `help`: gets the parts in which Commander writes a help. */
function createProgram(args: readonly string[], help: string[]): Command {
  const program = new Command('sluice')
  return program
    .description(
      'Delivers customer-data events from Kafka to webhooks: signed, isolated by destination, retried for four hours.',
    )
    .option('-V, --version', 'print the version, and the commit that it was made of')
    .on('option:version', () => {
      process.stdout.write(`${describeBuild(buildInfo())}\n`)
      throw new CommanderError(0, 'commander.version', '')
    })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void help.push(text),
      outputError: (text, write) => write(withSuggestion(text, program, args)),
    })
    .showHelpAfterError('(--help shows what there is)')
    .addHelpText(
      'after',
      `
Examples:
  sluice up                                   Kafka for development, topics, a gateway and a worker, in one process
  sluice gateway                              take messages by HTTP, as Segment's clients send them
  sluice worker                               a member of the consumer group for each CPU
  sluice worker --processes 4                 four of them
  sluice topics apply                         create the topics, correct their settings
  sluice topics grow 48                       more partitions, with the state and all that waits
  sluice catalog check catalog.yaml           every fault of a catalog, before it is used
  sluice apply -f crm.yaml                    make a destination while everything runs (catalog.source=topic)
  sluice send --source shop '{"type":"track","userId":"u1","event":"Hello"}'
  sluice audience sync vips.csv --space personas --audience aud_1 --name "Big spenders"
  sluice audience change --space personas --audience aud_1 --name "Big spenders" --user u1 --member true
  sluice status                               which destinations fail, why, and what waits
  sluice log find MESSAGE_ID                  what became of a message
  sluice listen --forward http://127.0.0.1:3000/webhook   requests as they are made, also to this machine
  sluice trigger track --to crm               a sample of a kind of message
  sluice log tail --failed                    what fails, as it does
  sluice destinations list                    all destinations, with their states
  sluice destinations test crm                whether an endpoint takes a message, and why not
  sluice filter test 'properties.total > 100' messages.ndjson   which messages meet a condition
  sluice import segment segment.json          the catalog that a workspace of Segment becomes
  sluice mappings test messages.ndjson --destination crm   the requests that its mappings make
  sluice runbook SluiceLagGrows               what an alert means, and what to do
  sluice config                               the configuration in force, and where each value is from

Every setting has a variable (SLUICE_KAFKA_BROKERS) and a flag (--kafka-brokers): docs/configuration.md.`,
    )
}

/** Prints why a command has failed. Returns the exit code. */
function tellFailure(error: unknown): number {
  // Commander has already written a message. The exit code is 2 if the command line is wrong, and 0 if help
  // was requested.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  writeError(
    error instanceof StartError
      ? withPages(`sluice: ${error.message}`)
      : String(error instanceof Error ? error.stack : error),
  )
  return error instanceof WrongUseError ? 2 : 1
}
