import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { type Commit, commitOf, utc } from '../src/telemetry/build-info.ts'

/**
 * `npm run build`: removes `dist`, bundles `src` into it, the console into `dist/console`, and writes the
 * commit and its date to `dist/build.json`. If there is no checkout, as in the build of an image, the variables BUILD_COMMIT and
 * BUILD_DATE (ISO 8601) give both. An argument is another folder for `dist` and package.json.
 *
 * The bundle has the modules of `src` and of TypeBox. As separate files, these 1,200 modules would take two
 * fifths of the CPU of a start, and 20 MB of each process (docs/decisions/068-what-a-start-loads.md). Other
 * packages aren't bundled. Code that only some commands need is in files of its own, which these commands
 * load.
 */
const root = resolve(import.meta.dirname, '..')
const target = resolve(root, process.argv[2] ?? '.')
const dist = join(target, 'dist')
/** The program, and the modules that are started as threads, by the names of their files in `dist`. */
const entries = {
  main: 'src/main.ts',
  'reader-thread': 'src/catalog/file/reader-thread.ts',
  'index-thread': 'src/delivery-log/sqlite/index-thread.ts',
}

rmSync(dist, { recursive: true, force: true })
const bundle = await rolldown({ cwd: root, input: entries, platform: 'node', external: isExternal })
// All files are in one folder: code that looks for files relative to itself needs to know only this folder.
await bundle.write({
  dir: dist,
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  comments: { jsdoc: false },
})
execFileSync(process.execPath, [join(root, 'scripts/build-console.ts'), target], { stdio: 'inherit' })
mkdirSync(join(dist, 'typebox'))
cpSync(join(root, 'node_modules/typebox/license'), join(dist, 'typebox/LICENSE'))
if (target !== root) cpSync(join(root, 'package.json'), join(target, 'package.json'))
writeFileSync(join(dist, 'build.json'), `${JSON.stringify(toldOrFound())}\n`)

/** Tells whether an import is of a package or of Node, and not of a file or of TypeBox. */
function isExternal(specifier: string): boolean {
  return /^[^./]/.test(specifier) && !/^typebox($|\/)/.test(specifier)
}

function toldOrFound(): Commit {
  const { BUILD_COMMIT: commit = '', BUILD_DATE: date = '' } = process.env
  if (commit === '') return commitOf(pathToFileURL(`${root}/`))
  return { commit: commit.slice(0, commit.endsWith('-dirty') ? undefined : 12), date: utc(date) }
}
