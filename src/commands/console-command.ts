import type { CommandTools, Flags } from './command/tools.ts'
import { textOf } from './command/tools.ts'

/** Adds `sluice console`. */
export function addConsoleCommand({ command, once }: CommandTools): void {
  command('console', 'print a link that signs a browser in to the console, once and within a minute')
    .option('--url <url>', 'where the admin API is (default: that of the sluice up of this folder)')
    .option('--token-file <file>', 'a file with the token to sign in with (default: that of sluice up)')
    .option('--open', 'open the link in a browser too')
    .addHelpText(
      'after',
      `
Examples:
  sluice console --open
  sluice console --url https://ops.example.com/sluice --token-file ~/.config/sluice/token

The link goes to standard output. Whoever opens it first is signed in as the holder of the token. See
docs/console.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config) =>
        (await import('./console.ts')).consoleLink(config, {
          url: textOf(flags['url']),
          tokenFile: textOf(flags['tokenFile']),
          isOpened: flags['open'] === true,
        }),
      ),
    )
}
