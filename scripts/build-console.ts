import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

/**
 * `npm run build:console`: bundles `src/console` into `dist/console`. An argument is another folder for
 * `dist`.
 *
 * The names of the files have a hash of their content, except `index.html`, which names the others.
 * `manifest.json` has an entry for each file, and beside each file is the same as `.gz`.
 */
const root = resolve(import.meta.dirname, '..')
const target = join(resolve(root, process.argv[2] ?? '.'), 'dist/console')

/** The most bytes of all files together, gzipped. */
const mostBytes = 150_000

/** What `manifest.json` says of a file. `gzipped` is the size of its `.gz`. */
type Listed = { readonly type: string; readonly bytes: number; readonly gzipped: number }
type File = { readonly name: string; readonly type: string; readonly text: string }

const style = hashed('console', 'css', 'text/css; charset=utf-8', styleText())
const script = hashed('console', 'js', 'text/javascript; charset=utf-8', await scriptText())
const page = readFileSync(join(root, 'src/console/index.html'), 'utf8')
  .replace('./console.css', `./${style.name}`)
  .replace('./console.js', `./${script.name}`)
const files = [
  { name: 'index.html', type: 'text/html; charset=utf-8', text: page },
  { name: 'LICENSES.txt', type: 'text/plain; charset=utf-8', text: licences() },
  style,
  script,
]
// Servers read the folder at any time. So it is made beside its place, and put there whole.
const made = `${target}.${process.pid}`
mkdirSync(made, { recursive: true })
const manifest = Object.fromEntries(files.map((file) => [file.name, write(file)]))
writeFileSync(join(made, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
const gzipped = Object.values(manifest).reduce((sum, file) => sum + file.gzipped, 0)
if (gzipped > mostBytes) {
  rmSync(made, { recursive: true })
  throw new Error(`the console has ${gzipped} bytes gzipped, and may have ${mostBytes}`)
}
if (existsSync(target)) renameSync(target, `${made}.before`)
renameSync(made, target)
rmSync(`${made}.before`, { recursive: true, force: true })
console.error(`dist/console: ${files.length} files, ${(gzipped / 1000).toFixed(1)} KB gzipped`)

async function scriptText(): Promise<string> {
  const bundle = await rolldown({
    cwd: root,
    input: 'src/console/main.tsx',
    platform: 'browser',
    tsconfig: 'src/console/tsconfig.json',
  })
  const { output } = await bundle.generate({ format: 'esm', minify: true, comments: { jsdoc: false } })
  await bundle.close()
  const [entry, ...others] = output
  if (others.length > 0) throw new Error('the console must be one script')
  return entry.code
}

/** Returns the licences of the packages that are in the bundle, which have to go with it. */
function licences(): string {
  const packages = ['preact', '@preact/signals', '@preact/signals-core', 'uplot']
  return `${packages.map((name) => `${name}\n\n${licenceOf(name)}`).join('\n\n\n')}\n`
}

function licenceOf(name: string): string {
  return readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8').trim()
}

function styleText(): string {
  const sheets = ['node_modules/uplot/dist/uPlot.min.css', 'src/console/styles.css']
  return sheets.map((file) => readFileSync(join(root, file), 'utf8')).join('\n')
}

function hashed(name: string, extension: string, type: string, text: string): File {
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 10)
  return { name: `${name}-${hash}.${extension}`, type, text }
}

function write({ name, type, text }: File): Listed {
  const content = Buffer.from(text)
  const zipped = gzipSync(content, { level: 9 })
  writeFileSync(join(made, name), content)
  writeFileSync(join(made, `${name}.gz`), zipped)
  return { type, bytes: content.length, gzipped: zipped.length }
}
