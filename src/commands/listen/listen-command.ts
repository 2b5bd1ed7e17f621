import { type CommandTools, type Flags, textOf, writeError, writeLine } from '../command/tools.ts'

export function addListenCommand({ command, once }: CommandTools): void {
  command('listen', 'show the requests to destinations as they are made, and forward them to this machine', {
    shown: { adminUrl: '--url' },
  })
    .option('--destination <id>', 'only requests to this destination')
    .option('--source <id>', 'only messages of this source')
    .option('--forward <url>', 'post each request to this URL too, such as http://127.0.0.1:3000/webhook')
    .option(
      '--secret <secret>',
      'sign what is forwarded with this secret (default: a new one, which is shown)',
    )
    .option('--standard-webhooks', 'sign what is forwarded by Standard Webhooks too')
    .option('--json', 'a JSON object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice listen
  sluice listen --destination crm --forward http://127.0.0.1:3000/webhook
  sluice trigger track --source shop

It asks the admin API for what the delivery log has, so it opens no port on this machine, and shows retries and
replays too. The log has each failed request. Of more than a hundred successes a second, it has a sample. A
forwarded request has the body, byte for byte, and the headers of the original; its signature is made here, because
nobody gets the secret of a destination. The endpoint itself gets its requests as ever. See docs/listen.md.`,
    )
    .action(async (flags: Flags) => {
      const ending = new AbortController()
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort())
      await once(flags, async (config) => {
        const { listen } = await import('./listen.ts')
        await listen(config, {
          filter: { destination: textOf(flags['destination']), source: textOf(flags['source']) },
          forward: textOf(flags['forward']),
          secret: textOf(flags['secret']),
          standardWebhooks: flags['standardWebhooks'] === true,
          isJson: flags['json'] === true,
          hasColours: process.stdout.isTTY && process.stdout.hasColors(),
          write: writeLine,
          say: writeError,
          signal: ending.signal,
        })
        return []
      })
    })
}
