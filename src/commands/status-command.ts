import type { CommandTools, Flags } from './command/tools.ts'

export function addStatusCommand({ command, once, screen }: CommandTools): void {
  command('status', 'say which destinations need attention and why, what waits, and which workers run')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice status
  sluice destinations list --state failing
  sluice destinations status crm

The ten destinations that need attention most come with the reason and with the command to run next. The
status is what the workers have told in the last seconds. What is not known is said. The exit code is 0, even
if destinations fail. See docs/status.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./status.ts')).showStatus({ config, log, screen }, { asJson: flags['json'] === true }),
      ),
    )
}
