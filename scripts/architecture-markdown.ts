import { alignTable } from '../src/config/markdown.ts'
import { type Folder, folders } from './folders.ts'
import { replaceMarked } from './marked-part.ts'

const marks = {
  begin: '<!-- folders: written by `npm run generate` from scripts/folders.ts -->',
  end: '<!-- end of folders -->',
}

/**
 * Returns the text of `docs/architecture.md` with a new table and a new graph of the folders. Throws if the
 * page lacks the marks around them.
 */
export function architectureMarkdown(page: string): string {
  const made = replaceMarked(page, marks, `${folderTable()}\n\n${folderGraph()}\n\n${roomTable()}`)
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

/** Lists the sub-folders, from the lowest to the highest of each folder. */
function roomTable(): string {
  const rows = Object.entries(folders).flatMap(([name, { rooms = {} }]) =>
    Object.entries(rooms).map(([room, { about, imports }]) => [
      room === '.' ? `\`${name}/*.ts\`` : `\`${name}/${room}/\``,
      about,
      imports.map((one) => (one === '.' ? `\`${name}/*.ts\`` : `\`${one}\``)).join(' '),
    ]),
  )
  return alignTable([['sub-folder', 'what', 'imports, of the same folder'], ...rows])
}

/**
 * Draws the graph of the folders. The folders in `joining` are left out. They connect all others, and their
 * arrows would hide the rest of the graph.
 */
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
