import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import { StartError, WrongUseError } from '../roles/start/start-error.ts'
import { keptFiles } from '../workshop/kept-files.ts'
import { readRunning } from '../workshop/running.ts'

export type ConsoleWish = {
  readonly url: string | undefined
  readonly tokenFile: string | undefined
  readonly isOpened: boolean
}

const withinMs = 10_000

/** Asks the admin API for a code, and returns the link that signs in with it. */
export async function consoleLink(config: Config, wish: ConsoleWish): Promise<readonly string[]> {
  const { url = urlOfWorkshop(config), tokenFile } = wish
  if (wish.url !== undefined && tokenFile === undefined)
    throw new WrongUseError('Say with --token-file which token signs in there.')
  const token = tokenIn(tokenFile ?? keptFiles.adminToken)
  const { home, code } = await codeAt(url.replace(/\/+$/, ''), token)
  const link = `${home}#code=${code}`
  if (wish.isOpened) await open(link)
  return [link]
}

function urlOfWorkshop({ admin: { host, port } }: Config): string {
  if (readRunning() === undefined || port === 0)
    throw new WrongUseError(
      'No `sluice up` with a fixed port runs in this folder: say with --url where the admin API is, and with --token-file which token signs in.',
    )
  return `http://${host}:${port}`
}

function tokenIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`The token can not be read: ${why}.`, { cause })
  }
}

async function codeAt(url: string, token: string): Promise<{ home: string; code: string }> {
  const headers = { authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(withinMs)
  try {
    const response = await fetch(`${url}/v1/session/codes`, { method: 'POST', headers, signal })
    const answer: { code?: unknown; path?: unknown; detail?: unknown } = Object(await response.json())
    if (typeof answer.code !== 'string' || typeof answer.path !== 'string')
      throw new StartError(
        `${url} has refused (${response.status}): ${typeof answer.detail === 'string' ? answer.detail : 'it may be no admin API'}`,
      )
    // Behind a proxy, the API knows its own URL. Otherwise this is the one that was asked.
    const home = answer.path.split('#')[0] ?? ''
    return { home: home.startsWith('/') ? `${url}/console/` : home, code: answer.code }
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`The admin API at ${url} does not answer: ${why}.`, { cause })
  }
}

/** Opens a link as the desktop does. If there is no desktop, the printed link is what remains. */
async function open(link: string): Promise<void> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [link], { stdio: 'ignore', detached: true })
  const { promise, resolve } = Promise.withResolvers<void>()
  child.on('spawn', () => resolve())
  child.on('error', () => {
    process.stderr.write(`sluice: ${program} can not be run: open the link yourself\n`)
    resolve()
  })
  await promise
  child.unref()
}
