import type { CommandTools, Flags } from './command/tools.ts'

/** Adds `sluice console`. */
export function addConsoleCommand({ command, once }: CommandTools): void {
  command('console', 'print a link that signs a browser in to the console, once and within a minute', {
    shown: { adminUrl: '--url', adminTokenFile: '--token-file' },
  })
    .option('--open', 'open the link in a browser too')
    .addHelpText(
      'after',
      `
Examples:
  sluice console --open
  sluice console --url https://ops.example.com/sluice --token-file ~/.config/sluice/token

In a folder where \`sluice up\` runs, nothing has to be set. The link goes to standard output. Whoever opens it
first is signed in as the holder of the token. See docs/console.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config) =>
        (await import('./console.ts')).consoleLink(config, { isOpened: flags['open'] === true }),
      ),
    )
}
