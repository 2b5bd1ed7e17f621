import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type BundleFile, typeOfFile } from '../../admin/console/bundle.ts'
import type { Config } from '../../config/schema.ts'
import { StartError } from '../start/start-error.ts'
import type { Theme } from './session-calls.ts'

const mostLogoBytes = 100 * 1_024
const logoTypes = new Set(['.svg', '.png'])

/** A theme, and the file of its logo. */
export type ReadTheme = {
  readonly shown: Theme
  readonly logo: { readonly name: string; readonly file: BundleFile } | undefined
}

/**
 * Reads how the console looks. Returns `undefined` if no setting says so. Throws if the logo can't be used.
 */
export function themeOf({ admin }: Config): ReadTheme | undefined {
  const { consoleName: name, consoleAccent: accent, consoleLogo: path, consoleTheme: scheme } = admin
  if (name === undefined && accent === undefined && path === undefined && scheme === 'system')
    return undefined
  const logo = path === undefined ? undefined : readLogo(path)
  const shown = { name: name ?? null, accent: accent ?? null, scheme, logo: logo?.name ?? null }
  return { shown, logo }
}

function readLogo(path: string): ReadTheme['logo'] {
  const type = extname(path).toLowerCase()
  if (!logoTypes.has(type))
    throw new StartError(`${path} can not be the logo of the console: it is no .svg or .png.`)
  try {
    const plain = readFileSync(path)
    if (plain.length > mostLogoBytes)
      throw new StartError(`${path} can not be the logo of the console: it has more than 100 KiB.`)
    const file = { type: typeOfFile(type), plain, gzip: undefined, brotli: undefined, isImmutable: false }
    return { name: `theme/logo${type}`, file }
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`admin.consoleLogo can not be read: ${why}.`, { cause })
  }
}
