import type { CommandTools, Flags } from './command/tools.ts'
import { textOf, writeLine } from './command/tools.ts'

/** Adds the command of the Helm chart's Job. No help shows it, because nobody else needs it. */
export function addMakeUserKeyCommand({ program }: CommandTools): void {
  program
    .command('make-user-key', { hidden: true })
    .description('make the key of attempts.userKey in a Secret of Kubernetes, unless it is there')
    .requiredOption('--secret <name>', 'the name of the Secret')
    .requiredOption('--access <folder>', 'the folder with the files token, ca.crt and namespace')
    .option('--api <url>', 'the API server', 'https://kubernetes.default.svc')
    .action(async (flags: Flags) => {
      const { makeUserKey } = await import('./make-user-key.ts')
      const [secret = '', folder = '', api = ''] = ['secret', 'access', 'api'].map((name) =>
        textOf(flags[name]),
      )
      writeLine(await makeUserKey({ secret, folder, api }))
    })
}
