import { isString, listOf } from '../catalog/plain-data.ts'
import { type CommandTools, type Flags, textOf } from './command/tools.ts'

export function addImportCommands({ program, command, once }: CommandTools): void {
  const parent = program.command('import').description('make a catalog of the settings of another system')
  command('segment', 'print the catalog that does what the webhooks of a Segment workspace do', { parent })
    .argument('<files...>', "answers of Segment's Public API, JSON; - reads standard input")
    .option('--json', 'print one JSON object with the catalog, the names of its variables, and the notes')
    .option('--variables <folder>', 'also write the secrets, each into a file of a new folder')
    .addHelpText(
      'after',
      `
Examples:
  sluice import segment segment.json > catalog.yaml && sluice catalog check catalog.yaml --allow-unset
  sluice import segment sources.json destinations.json subscriptions.json --variables secrets > catalog.yaml

A file has one answer, a list of them, or one a line: of GET /sources, GET /destinations, and for each destination
GET /destinations/ID/subscriptions and GET /destination/ID/filters. All destinations are off. Secrets are variables,
and --variables writes them as catalog.variablesFolder reads them. What can't be taken over is told on standard
error. Neither Kafka nor Segment is asked. See docs/coming-from-segment.md.`,
    )
    .action((files: unknown, flags: Flags) =>
      once(flags, async () =>
        (await import('./import-segment.ts')).importSegment({
          files: listOf(files).filter(isString),
          folder: textOf(flags['variables']),
          asJson: flags['json'] === true,
        }),
      ),
    )
}
