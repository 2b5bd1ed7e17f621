import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Returns the words with which a person who is in `folder` calls the program of `packageFolder`: `sluice`,
 * `npx sluice`, or `npx` with the whole name of the package. It is `npx sluice` only if npx finds this
 * program in the folder or above it. Anywhere else, npx would fetch what somebody has published under this
 * name. The image has no npx, and the package's folder in it is no checkout.
 */
export function ownCommand(folder: string, packageFolder: string): string {
  const program = realpathSync(packageFolder)
  // npx has fetched the package for this one call.
  if (/[/\\]_npx[/\\]/.test(program)) return `npx ${nameOf(program)}`
  const isCheckout = existsSync(join(program, 'src/main.ts'))
  for (let place = realpathSync(folder); ; place = dirname(place)) {
    if ((isCheckout && place === program) || holds(place, program)) return 'npx sluice'
    if (place === dirname(place)) return 'sluice'
  }
}

/** Tells whether the command that npm has linked in a folder is of this program. */
function holds(place: string, program: string): boolean {
  const link = join(place, 'node_modules/.bin/sluice')
  return existsSync(link) && !relative(program, realpathSync(link)).startsWith('..')
}

function nameOf(program: string): string {
  const { name }: { name: string } = JSON.parse(readFileSync(join(program, 'package.json'), 'utf8'))
  return name
}
