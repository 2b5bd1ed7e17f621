import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import {
  type Artifact,
  isVersion,
  planRelease,
  prepareFiles,
  provenanceOf,
  type ReleasePlan,
  type VersionFiles,
  versionFiles,
  withRunbooks,
} from './release-plan.ts'

/**
 * `npm run release`: checks that this commit can be released, makes the files of the release, and tags the
 * commit (docs/releasing.md). Nothing is pushed or published.
 *
 *   --prepare VERSION   only writes the version into all files that name it, and adds the changelog's section
 *   --dry-run           makes no tag, and makes the files in a temporary folder that is removed
 *   --tagged TAG        for a workflow: the tag must exist already, and must name this commit; makes no tag
 *   --out FOLDER        the folder for the files, which must be empty (default: release/VERSION)
 */
const root = resolve(import.meta.dirname, '..')
const { values: flags } = parseArgs({
  options: {
    prepare: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    tagged: { type: 'string' },
    out: { type: 'string' },
  },
})

try {
  if (flags.prepare === undefined) release()
  else prepare(flags.prepare)
} catch (error) {
  console.error(`release: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}

function prepare(next: string): void {
  if (!isVersion(next)) throw new Error(`${next} is no version such as 1.2.3`)
  const before = readFiles()
  const after = prepareFiles(before, next, new Date().toISOString().slice(0, 10))
  for (const file of versionFiles) {
    if (after[file] === before[file]) continue
    writeFileSync(join(root, file), after[file])
    console.log(`wrote ${file}`)
  }
}

function release(): void {
  const plan = planHere()
  if (plan.faults.length > 0) throw new Error(`this can not be released:\n  ${plan.faults.join('\n  ')}`)
  const isDry = flags['dry-run']
  const folder = isDry
    ? mkdtempSync(join(tmpdir(), 'sluice-release-'))
    : emptyFolder(flags.out ?? `release/${plan.version}`)
  try {
    const artifacts = makeFiles(plan, folder)
    for (const { name, sha256 } of artifacts) console.log(`${sha256}  ${name}`)
    if (isDry) console.log(`${plan.tag} can be released; nothing was kept`)
    else if (flags.tagged === undefined) tag(plan, folder)
    else console.log(`made ${folder}`)
  } finally {
    if (isDry) rmSync(folder, { recursive: true })
  }
}

function planHere(): ReleasePlan {
  const files = readFiles()
  const { version }: { version: string } = JSON.parse(files['package.json'])
  const tagged = spawnSync('git', ['rev-parse', '--quiet', '--verify', `refs/tags/v${version}^{commit}`], {
    cwd: root,
    encoding: 'utf8',
  })
  return planRelease({
    files,
    status: run('git', ['status', '--porcelain']),
    head: run('git', ['rev-parse', 'HEAD']).trim(),
    tagged: tagged.status === 0 ? tagged.stdout.trim() : undefined,
    expectedTag: flags.tagged,
  })
}

function readFiles(): VersionFiles {
  return {
    'package.json': read('package.json'),
    'package-lock.json': read('package-lock.json'),
    'deploy/helm/sluice/Chart.yaml': read('deploy/helm/sluice/Chart.yaml'),
    'CHANGELOG.md': read('CHANGELOG.md'),
  }
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/**
 * Makes the files of a release: tarball, chart, bill of materials, a statement of their provenance, and
 * checksums of all of these. Also writes `notes.md`, the text of the release, which has no checksum.
 */
function makeFiles({ version, notes }: ReleasePlan, folder: string): readonly Artifact[] {
  const helm = process.env['HELM'] ?? 'helm'
  const helmVersion = run(helm, ['version', '--short']).trim()
  run('npm', ['pack', '--loglevel=error', '--pack-destination', folder])
  // npm and helm both name their file sluice-VERSION.tgz, so the chart is made in another folder and renamed.
  const apart = join(folder, 'chart')
  run(helm, ['package', releasedChart(version, apart), '--destination', apart])
  renameSync(join(apart, `sluice-${version}.tgz`), join(folder, `sluice-chart-${version}.tgz`))
  rmSync(apart, { recursive: true })
  run(process.execPath, ['scripts/sbom.ts', join(folder, `sluice-${version}.cdx.json`)])
  const commit = run('git', ['rev-parse', 'HEAD']).trim()
  const statement = provenanceOf({
    artifacts: artifactsIn(folder),
    version,
    commit,
    repository: repositoryUrl(),
    builder: builderId(),
    tools: { node: process.version, npm: run('npm', ['--version']).trim(), helm: helmVersion },
    lockSha256: digest(readFileSync(join(root, 'package-lock.json'))),
  })
  writeFileSync(join(folder, `sluice-${version}.intoto.json`), `${JSON.stringify(statement, null, 2)}\n`)
  const all = artifactsIn(folder)
  const lines = all.map(({ name, sha256 }) => `${sha256}  ${name}\n`)
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''))
  writeFileSync(join(folder, 'notes.md'), notes)
  return all
}

/**
 * Copies the chart into `folder`, and returns the path of the copy. The alerts of the copy lead to the runbooks of
 * this version in the repository, if its URL is known.
 */
function releasedChart(version: string, folder: string): string {
  const copy = join(folder, 'sluice')
  cpSync(join(root, 'deploy/helm/sluice'), copy, { recursive: true })
  const file = join(copy, 'values.yaml')
  writeFileSync(file, withRunbooks(readFileSync(file, 'utf8'), repositoryUrl(), version))
  return copy
}

function artifactsIn(folder: string): readonly Artifact[] {
  return readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, sha256: digest(readFileSync(join(folder, name))) }))
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Returns the repository's https URL without a login. Returns an empty text if there is no such URL. */
function repositoryUrl(): string {
  const { stdout, status } = spawnSync('git', ['remote', 'get-url', 'origin'], {
    cwd: root,
    encoding: 'utf8',
  })
  const given = status === 0 ? stdout.trim().replace(/^git@([^:]+):/, 'https://$1/') : ''
  const url = URL.parse(given)
  return url?.protocol === 'https:' ? `${url.origin}${url.pathname.replace(/\.git$/, '')}` : ''
}

/** Returns the URL of the workflow's run, or a URN for a build by hand, which proves less. */
function builderId(): string {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: id = '' } = process.env
  return id === '' ? 'urn:sluice:by-hand' : `${server}/${repository}/actions/runs/${id}`
}

function tag({ version, tag: name, notes }: ReleasePlan, folder: string): void {
  const message = `Sluice ${version}\n\n${notes}`
  // By default, git drops lines that begin with # as comments. In a changelog these lines are headings.
  run('git', ['tag', '--annotate', '--cleanup=verbatim', '--file=-', name], message)
  console.log(`made ${folder}, and the tag ${name}; now: git push origin ${name}`)
}

function emptyFolder(given: string): string {
  const folder = resolve(root, given)
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty: remove what is in it`)
  return folder
}

function run(command: string, args: readonly string[], input = ''): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8', input })
  if (error !== undefined) throw new Error(`${command} can not be run, install it: ${error.message}`)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  return stdout
}
