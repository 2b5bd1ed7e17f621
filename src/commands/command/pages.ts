import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../telemetry/build-info.ts'

const pageNamed = /\bdocs\/[\w-]+\.md\b/g

/**
 * Returns a text, and below it where to read the pages `docs/….md` that it names: at their URL, if the
 * package says where it is at home, and otherwise in the folder of the package, which has them too.
 */
export function withPages(text: string, home: Home = homeOfPackage()): string {
  const pages = new Set(text.match(pageNamed))
  if (pages.size === 0) return text
  const where = [...pages].map(
    (page) => `  ${home.url === undefined ? `${home.folder}${page}` : home.url(page)}`,
  )
  return `${text.trimEnd()}\n\nTo read on:\n${where.join('\n')}`
}

type Home = {
  /** The folder of the package, with a slash at its end. */
  readonly folder: string
  /** Returns the URL of a page of this version. `undefined`: it has none. */
  readonly url: ((page: string) => string) | undefined
}

function homeOfPackage(): Home {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a file of our own
  const { homepage, version } = JSON.parse(
    readFileSync(new URL('package.json', packageFolder), 'utf8'),
  ) as Record<string, string | undefined>
  const url = homepage === undefined ? undefined : (page: string) => `${homepage}/blob/v${version}/${page}`
  return { folder: fileURLToPath(packageFolder), url }
}
