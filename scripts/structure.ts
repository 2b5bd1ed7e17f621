import { readFileSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'
import { folders } from './folders.ts'
import { circlesOf, fileEdges, placeOf, readImports } from './import-graph.ts'

/**
 * `npm run structure [-- FOLDER]`: prints figures about the structure of `src` of this checkout, or of the
 * checkout in FOLDER. With `--json`, the last line is one JSON object.
 */
const root = resolve(
  process.argv.slice(2).find((flag) => !flag.startsWith('--')) ?? join(import.meta.dirname, '..'),
)
const src = join(root, 'src')
const graph = readImports(src)
const { files, imports } = graph

const lines = files.flatMap((file) => readFileSync(join(src, file), 'utf8').trimEnd().split('\n'))
const isCode = (line: string): boolean => line.trim() !== '' && !/^\s*(?:\/\/|\/?\*)/.test(line)

const sizes = [...Map.groupBy(files, (file) => posix.dirname(file))]
  .map(([folder, inside]) => ({ folder, files: inside.length }))
  .toSorted((a, b) => b.files - a.files)

const circles = circlesOf(fileEdges(graph))
const local = imports.flatMap(({ file, target }) => (target === undefined ? [] : [{ file, target }]))

/** The imports that lead from a sub-folder to another one of the same folder that doesn't stand below it. */
const upward = local.filter(({ file, target }) => {
  const from = placeOf(file)
  const to = placeOf(target)
  if (from.folder !== to.folder || from.room === to.room) return false
  return !folders[from.folder]?.rooms?.[from.room]?.imports.includes(to.room)
})

const enteredFiles = (folder: string): number =>
  new Set(
    local.flatMap(({ file, target }) =>
      placeOf(target).folder === folder && placeOf(file).folder !== folder ? [target] : [],
    ),
  ).size

const figures = {
  files: files.length,
  lines: lines.length,
  code_lines: lines.filter(isCode).length,
  folders: sizes.length,
  fullest_folder: sizes[0]?.files ?? 0,
  file_circles: circles.length,
  files_in_circles: circles.flat().length,
  upward_imports: upward.length,
  kafka_files_imported_from_outside: enteredFiles('kafka'),
}

console.log(`files: ${figures.files}, lines: ${figures.lines}, of code: ${figures.code_lines}`)
console.log(
  `fullest folders: ${sizes
    .slice(0, 5)
    .map((size) => `${size.folder} (${size.files})`)
    .join(', ')}`,
)
console.log(`circles between files, types included: ${circles.length}`)
for (const circle of circles) console.log(`  ${circle.length} files: ${circle.slice(0, 4).join(', ')}, …`)
console.log(`imports between sub-folders that point up: ${upward.length}`)
console.log(`files of src/kafka that other folders import: ${figures.kafka_files_imported_from_outside}`)
if (process.argv.includes('--json')) console.log(JSON.stringify(figures))
