import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { withLicence } from './dependencies.ts'
import { readLock, readManifest } from './project-files.ts'

/**
 * `npm run sbom`: writes a bill of materials (CycloneDX) of a production install to `sluice.cdx.json`, or to
 * the file that the argument names. `--with-node` adds the Node.js that runs this script, for an image that
 * contains it.
 *
 * `npm sbom` makes the bill from a lock file without the development packages. We don't use its flag
 * `--omit dev`, because npm 11 then also leaves out production packages that a development package depends on
 * too (undici and yaml).
 */
const root = resolve(import.meta.dirname, '..')
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'with-node': { type: 'boolean', default: false } },
})
const file = resolve(positionals[0] ?? join(root, 'sluice.cdx.json'))

const scratch = mkdtempSync(join(tmpdir(), 'sluice-sbom-'))
try {
  const { devDependencies: _dev, ...manifest } = readManifest(root)
  const lock = readLock(root)
  const { devDependencies: _lockedDev, ...project } = lock.packages[''] ?? {}
  const shipped = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && !dev)
    .map(([path, entry]) => [path, withLicence(path, entry)] as const)
  // npm uses the name of the folder as the name of the project.
  const folder = join(scratch, manifest.name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const packages = { '': project, ...Object.fromEntries(shipped) }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }))
  const options = ['--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application']
  const { status, stdout, stderr } = spawnSync('npm', ['sbom', ...options], { cwd: folder, encoding: 'utf8' })
  if (status === 0) {
    writeFileSync(file, values['with-node'] ? withNode(stdout) : stdout)
    console.log(`wrote ${file}: ${shipped.length} packages`)
  } else {
    console.log(`npm sbom: ${stderr}`)
    process.exitCode = 1
  }
} finally {
  rmSync(scratch, { recursive: true })
}

function withNode(text: string): string {
  const bom: { components: object[] } = JSON.parse(text)
  const version = process.versions.node
  const purl = `pkg:generic/node@${version}`
  const licenses = [{ license: { id: 'MIT' } }]
  bom.components.push({ 'bom-ref': purl, type: 'platform', name: 'node', version, purl, licenses })
  return `${JSON.stringify(bom, null, 2)}\n`
}
