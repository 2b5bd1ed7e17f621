import { spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Bundle, BundleFolder } from '../../admin/console/bundle.ts'

const isCheckout = import.meta.url.endsWith('.ts')
const root = new URL(isCheckout ? '../../../' : '../', import.meta.url)
const folder = fileURLToPath(new URL('dist/console/', root))
const sources = ['src/console', 'clients/admin'].map((place) => fileURLToPath(new URL(place, root)))
const buildScript = fileURLToPath(new URL('scripts/build-console.ts', root))

type Log = Record<'info' | 'warn', (fields: object, message: string) => void>

/**
 * Opens the pages of the console. A package has them. In a checkout, they are built when a browser asks for
 * them first, and again if their sources have changed when this process starts.
 */
export function openBundle(prefix: string, log: Log): () => Bundle | string {
  const bundle = new BundleFolder(folder, prefix)
  let state: 'idle' | 'building' | 'failed' = 'idle'
  let isOld = isCheckout && isOlderThan(join(folder, 'manifest.json'), sources)
  return () => {
    const found = bundle.current()
    if (found !== undefined && (!isOld || state === 'failed')) return found
    if (!isCheckout || !existsSync(buildScript) || state === 'failed') return notBuilt
    if (state === 'idle') {
      state = 'building'
      void build(log).then((isBuilt) => {
        state = isBuilt ? 'idle' : 'failed'
        isOld = false
      })
    }
    return 'The console is being built, which takes some seconds.'
  }
}

/** Tells whether a file is older than something in these folders. A file that isn't there is not. */
export function isOlderThan(file: string, folders: readonly string[]): boolean {
  const madeMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs
  if (madeMs === undefined) return false
  return folders
    .filter((one) => existsSync(one))
    .flatMap((one) => readdirSync(one, { recursive: true, encoding: 'utf8' }).map((name) => join(one, name)))
    .some((one) => statSync(one).mtimeMs > madeMs)
}

const notBuilt = 'This checkout has no console: run npm run build:console'

/** Builds the pages with a script. Resolves with true if that has succeeded. */
export function build(log: Log, script = buildScript): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-2_000)))
  child.on('error', (error) => (said = error.message))
  child.on('close', (code) => {
    if (code === 0) log.info({ folder }, 'the console was built')
    else log.warn({ problem: said.trim() }, 'the console can not be built: run npm run build:console')
    resolve(code === 0)
  })
  return promise
}
