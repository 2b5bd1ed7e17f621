import type { CommandTools, Flags } from './command/tools.ts'

export function addCatalogCommands({ program, command, once }: CommandTools): void {
  const parent = program.command('catalog').description('check a catalog before it is used')
  command('check', 'name the faults of a catalog, as a worker would', { parent })
    .argument('[file]', 'the file (default: the setting catalog.file)')
    .option(
      '--allow-unset',
      'accept ${CATALOG_X} variables that are not set here, as in continuous integration',
    )
    .option(
      '--against <file>',
      'an earlier version: name what differs, and refuse a file that lacks many of its destinations or sources (default: the catalog that a worker with this state folder used last)',
    )
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog check catalog.yaml
  sluice catalog check catalog.yaml --allow-unset
  sluice catalog check catalog.yaml --against catalog.yaml.old
  sluice catalog check catalog.yaml --delivery-allow-addresses 127.0.0.0/8    (as sluice up does)

The exit code is 0 if the catalog has no faults, and 1 if it has any. docs/catalog.md lists all fields.`,
    )
    .action((path: string | undefined, flags: Flags) =>
      once(flags, async (config) =>
        (await import('./catalog-check.ts')).checkCatalog(config, {
          path,
          against: typeof flags['against'] === 'string' ? flags['against'] : undefined,
          mayLackVariables: flags['allowUnset'] === true,
        }),
      ),
    )
}
