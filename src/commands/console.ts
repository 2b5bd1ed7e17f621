import { spawn } from 'node:child_process'
import type { Config } from '../config/schema.ts'
import { StartError } from '../roles/start/start-error.ts'
import { writeError } from './command/tools.ts'
import { createAdminClient } from './listen/admin-client.ts'

/** Asks the admin API for a code, and returns the link that signs in with it. */
export async function consoleLink(
  config: Config,
  { isOpened }: { readonly isOpened: boolean },
): Promise<readonly string[]> {
  const client = createAdminClient(config)
  const { path }: { path?: unknown } = Object(await client.ask('POST', '/v1/session/codes'))
  if (typeof path !== 'string') throw new StartError(`${client.origin} has answered without a code.`)
  // Behind a proxy, the API knows its own URL. Otherwise it is the one that was asked.
  const link = path.startsWith('/') ? `${client.origin}${path}` : path
  if (isOpened) await open(link)
  return [link]
}

/** Opens a link as the desktop does. If there is no desktop, the printed link is what remains. */
async function open(link: string): Promise<void> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [link], { stdio: 'ignore', detached: true })
  const { promise, resolve } = Promise.withResolvers<void>()
  child.on('spawn', () => resolve())
  child.on('error', () => {
    writeError(`sluice: ${program} can not be run: open the link yourself`)
    resolve()
  })
  await promise
  child.unref()
}
