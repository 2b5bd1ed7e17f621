import { text as textOfStream } from 'node:stream/consumers'
import { type CommandTools, type Flags, writeLine } from './command/tools.ts'

export function addSigningKeyCommand({ program }: CommandTools): void {
  program
    .command('signing-key')
    .description('make a private key of Ed25519 for signatures, or print the public key of one')
    .option('--public', 'print the public key of the private key on standard input')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice signing-key
  sluice signing-key --public < private.key

The private key belongs into signing.ed25519 of a destination, best as a variable. Receivers get the public key, from you
or from the gateway (GET /v1/signing-keys/DESTINATION). See docs/verifying-signatures.md. With a catalog in the topic,
\`sluice destinations rotate ID --ed25519\` makes a key that nobody sees. This needs neither a network nor a
configuration.`,
    )
    .action(async (flags: Flags) => {
      const given = flags['public'] === true ? (await textOfStream(process.stdin)).trim() : undefined
      const { signingKeyLines } = await import('./signing-key.ts')
      for (const line of signingKeyLines(given, flags['json'] === true)) writeLine(line)
    })
}
