import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { withLicence } from './dependencies.ts'
import { readLock, readManifest } from './project-files.ts'

/**
 * `npm run sbom`: writes what a production install is made of to `sluice.cdx.json`, or to the file that is named, as CycloneDX.
 * It is npm's own, of a lock file without the development packages: `npm sbom --omit dev` also leaves out production
 * packages that a development package asks for as well (npm 11: undici and yaml). `--with-node` adds the Node that runs this, as an
 * image has it.
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
  // npm takes the name of the folder for that of the project.
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
