import { spawnSync } from 'node:child_process'
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { type Commit, commitOf, utc } from '../src/telemetry/build-info.ts'

/**
 * `npm run build`: removes `dist`, compiles `src` into it, and writes the commit and its date to
 * `dist/build.json`. If there is no checkout, as in the build of an image, the variables BUILD_COMMIT and
 * BUILD_DATE (ISO 8601) give both. An argument is another folder for `dist` and package.json.
 *
 * `dist/typebox` has the modules of TypeBox, bundled into a few files. The 683 files of the package would
 * take a quarter of a start's CPU, and 11 MB of each process (docs/decisions/068-what-a-start-loads.md).
 */
const root = resolve(import.meta.dirname, '..')
const target = resolve(root, process.argv[2] ?? '.')
const dist = join(target, 'dist')
const bundled = join(dist, 'typebox')
/** The entry points of TypeBox that `src` imports, by the names of their files in `dist/typebox`. */
const entries = {
  index: 'typebox',
  compile: 'typebox/compile',
  system: 'typebox/system',
  value: 'typebox/value',
} as const

rmSync(dist, { recursive: true, force: true })
const compile = ['-p', 'tsconfig.build.json', '--outDir', dist]
const tsc = join(root, 'node_modules/.bin/tsc')
const { status } = spawnSync(tsc, compile, { cwd: root, stdio: 'inherit' })
if (status === 0) {
  await bundleTypeBox()
  for (const file of globSync('**/*.js', { cwd: dist, exclude: ['typebox/**'] })) useBundle(join(dist, file))
  if (target !== root) copyFileSync(join(root, 'package.json'), join(target, 'package.json'))
  writeFileSync(join(dist, 'build.json'), `${JSON.stringify(toldOrFound())}\n`)
} else process.exitCode = 1

async function bundleTypeBox(): Promise<void> {
  const bundle = await rolldown({ input: entries, cwd: root, platform: 'node' })
  await bundle.write({
    dir: bundled,
    entryFileNames: '[name].js',
    chunkFileNames: 'shared.js',
    comments: { jsdoc: false },
  })
  copyFileSync(join(root, 'node_modules/typebox/license'), join(bundled, 'LICENSE'))
}

/** Changes a file of the build, so that it imports TypeBox from `dist/typebox`. */
function useBundle(file: string): void {
  const text = readFileSync(file, 'utf8')
  const changed = text.replaceAll(/(?<=^import .*from ')typebox(?:\/\w+)?(?=';?$)/gm, (specifier) => {
    const entry = Object.entries(entries).find(([, imported]) => imported === specifier)?.[0]
    if (entry === undefined)
      throw new Error(`${file} imports ${specifier}, which scripts/build.ts doesn't bundle`)
    const path = relative(dirname(file), join(bundled, `${entry}.js`))
    return path.startsWith('.') ? path : `./${path}`
  })
  if (/['"]typebox(?:\/|['"])/.test(changed))
    throw new Error(`${file} imports TypeBox in a way that is not bundled`)
  if (changed !== text) writeFileSync(file, changed)
}

function toldOrFound(): Commit {
  const { BUILD_COMMIT: commit = '', BUILD_DATE: date = '' } = process.env
  if (commit === '') return commitOf(pathToFileURL(`${root}/`))
  return { commit: commit.slice(0, commit.endsWith('-dirty') ? undefined : 12), date: utc(date) }
}
