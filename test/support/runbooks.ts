import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/** The page that explains the variables in the commands of all runbooks. */
export const variablesPage = 'deploy/runbooks/README.md'

/** The paths of the runbooks in the repository, without `variablesPage`. */
export const runbooks: readonly string[] = globSync('deploy/runbooks/*.md', { cwd: root })
  .filter((file) => file !== variablesPage)
  .toSorted()

export function readRunbook(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/**
 * Returns the lines of a page's code blocks that are in this language. A block in a list is indented; its
 * lines are returned without that.
 */
export function blocksOf(page: string, language: string): string[] {
  const blocks = [...page.matchAll(new RegExp(`^( *)\`\`\`${language}\n(.*?)^\\1\`\`\``, 'gms'))]
  return blocks.flatMap(([, indent = '', block = '']) =>
    block
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(indent.length)),
  )
}
