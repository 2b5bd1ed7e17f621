import { alignTable } from '../src/config/markdown.ts'
import { type Folder, folders } from './folders.ts'
import { replaceMarked } from './marked-part.ts'

const marks = {
  begin: '<!-- folders: written by `npm run generate` from scripts/folders.ts -->',
  end: '<!-- end of folders -->',
}

/** `docs/architecture.md` with its table and graph of folders made anew. Throws where their place isn't marked. */
export function architectureMarkdown(page: string): string {
  const made = replaceMarked(page, marks, `${folderTable()}\n\n${folderGraph()}`)
  if (made === undefined) throw new Error('docs/architecture.md has lost the marks around its folders')
  return made
}

const joining: ReadonlySet<string> = new Set(['.', 'commands', 'roles'])

function folderTable(): string {
  const rows = Object.entries(folders).map(([name, { about, imports, packages = [], isPure }]) => [
    name === '.' ? '`src`' : `\`${name}/\``,
    about + (isPure ? ' (pure)' : ''),
    name === 'roles' ? 'every folder' : imports.map((one) => `\`${one}\``).join(' '),
    packages.map((one) => `\`${one}\``).join(' '),
  ])
  return alignTable([['folder', 'what', 'imports', 'packages of its own'], ...rows])
}

/** Without those that would hide the rest: they join it. */
function folderGraph(): string {
  const shown = Object.entries(folders).filter(([name]) => !joining.has(name))
  const lines = shown.flatMap(([name, folder]) => [
    nodeOf(name, folder),
    ...folder.imports.map((to) => `${name} --> ${to}`),
  ])
  return ['```mermaid', 'flowchart LR', ...lines.map((line) => `  ${line}`), '```'].join('\n')
}

function nodeOf(name: string, { isPure }: Folder): string {
  return isPure ? `${name}([${name}])` : `${name}[${name}]`
}
