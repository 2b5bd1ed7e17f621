import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { blocksOf } from '../../scripts/markdown-page.ts'

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

/** Returns the lines of a page's code blocks that are in this language. */
export function linesOf(page: string, language: string): string[] {
  return blocksOf(page).flatMap((block) => (block.language === language ? block.text.trim().split('\n') : []))
}
