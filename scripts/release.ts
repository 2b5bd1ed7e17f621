import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
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
} from './release-plan.ts'
import {
  namedChart,
  namedManifest,
  namedValues,
  namesOf,
  publisherFaults,
  type ReleaseNames,
} from './release-names.ts'
import { builders, type Part, partsOf, type Push, pushCommands, pushFaults } from './release-push.ts'

/**
 * `npm run release`: checks that this commit can be released, makes the files of the release, and tags the
 * commit (docs/releasing.md). Pushes nothing without `--push`. The variable RELEASE_OWNER names who publishes, and
 * RELEASE_REGISTRY the registry of the image and of the chart.
 *
 *   --prepare VERSION   only writes the version into all files that name it, and adds the changelog's section
 *   --dry-run           makes no tag, and makes the files in a temporary folder that is removed
 *   --tagged TAG        for a workflow: the tag must exist already, and must name this commit; makes no tag
 *   --out FOLDER        the folder for the files, which must be empty (default: release/VERSION)
 *   --push PARTS        then pushes them: all, or some of image, chart and package, separated by commas
 *   --files FOLDER      makes neither files nor tag: pushes the files that are in the folder
 *   --platforms LIST    the platforms of the image (default: linux/amd64,linux/arm64)
 *   --builder PROGRAM   what builds and pushes the image: docker (with buildx, the default) or buildah
 *   --build-arg N=V     a further argument of the image's build, such as NODE_IMAGE (repeatable)
 *   --plain-http        talks http to the registry of image and chart, for one on this machine
 */
const root = resolve(import.meta.dirname, '..')
const { values: flags } = parseArgs({
  options: {
    prepare: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    tagged: { type: 'string' },
    out: { type: 'string' },
    push: { type: 'string' },
    files: { type: 'string' },
    platforms: { type: 'string', default: 'linux/amd64,linux/arm64' },
    builder: { type: 'string', default: 'docker' },
    'build-arg': { type: 'string', multiple: true, default: [] },
    'plain-http': { type: 'boolean', default: false },
  },
})
const helm = process.env['HELM'] ?? 'helm'

try {
  if (flags.prepare !== undefined) prepare(flags.prepare)
  else if (flags.files === undefined) release()
  else pushFiles(resolve(root, flags.files))
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
  const { names, wanted, faults } = publication()
  const plan = planHere(flags.tagged)
  const all = [...plan.faults, ...faults]
  if (all.length > 0) throw new Error(`this can not be released:\n  ${all.join('\n  ')}`)
  const isDry = flags['dry-run']
  const folder = isDry
    ? mkdtempSync(join(tmpdir(), 'sluice-release-'))
    : emptyFolder(flags.out ?? `release/${plan.version}`)
  try {
    const artifacts = makeFiles(plan, names, folder)
    for (const { name, sha256 } of artifacts) console.log(`${sha256}  ${name}`)
    if (isDry) console.log(`${plan.tag} can be released; nothing was kept or pushed`)
    else {
      if (flags.tagged === undefined) tag(plan, folder)
      else console.log(`made ${folder}`)
      push(wanted, { names, version: plan.version, folder })
    }
  } finally {
    if (isDry) rmSync(folder, { recursive: true })
  }
}

/** What is to be pushed, and under which names. */
type Publication = {
  readonly names: ReleaseNames
  readonly wanted: readonly Part[]
  readonly faults: readonly string[]
}

function publication(): Publication {
  const { RELEASE_OWNER: owner = '', RELEASE_REGISTRY: registry = '' } = process.env
  const publisher = { owner, registry, origin: remoteUrl() }
  const names = namesOf(publisher)
  const wanted = flags.push === undefined ? [] : partsOf(flags.push)
  const faults = [...publisherFaults(publisher)]
  if (wanted === undefined)
    faults.push('--push takes all, or some of image, chart and package, separated by commas')
  else if (wanted.length > 0) faults.push(...pushFaults(wanted, names))
  if (builders.every((builder) => builder !== flags.builder))
    faults.push(`--builder takes ${builders.join(' or ')}`)
  return { names, wanted: wanted ?? [], faults }
}

/** Pushes the files that an earlier run has made, for example because that run ended while it pushed them. */
function pushFiles(folder: string): void {
  const { names, wanted, faults } = publication()
  if (wanted.length === 0) throw new Error('--files needs --push, which says what to push')
  const { version }: { version: string } = JSON.parse(read('package.json'))
  // The image is built of the checkout, so this has to be the commit of the files.
  const plan = planHere(`v${version}`)
  const all = [...plan.faults, ...faults, ...fileFaults(folder, names, version)]
  if (all.length > 0) throw new Error(`these files can not be pushed:\n  ${all.join('\n  ')}`)
  push(wanted, { names, version, folder })
}

/** Returns what is wrong with the files of a folder: they must be whole, of this version, and have these names. */
function fileFaults(folder: string, names: ReleaseNames, version: string): readonly string[] {
  if (!existsSync(join(folder, 'SHA256SUMS')))
    return [`${folder} has no SHA256SUMS: it has no files of a release`]
  const sums = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')
  const missing = ['sluice', 'sluice-chart']
    .map((name) => `${name}-${version}.tgz`)
    .filter((file) => !sums.some((line) => line.endsWith(`  ${file}`)))
  if (missing.length > 0) return [`${folder} has no ${missing.join(' and no ')}: it is of another version`]
  const changed = sums.filter((line) => {
    const [sha256, file = ''] = line.split('  ')
    return digest(readFileSync(join(folder, file))) !== sha256
  })
  if (changed.length > 0)
    return changed.map((line) => `SHA256SUMS: the file has changed since: ${line.split('  ')[1]}`)
  const held = [
    run('tar', ['-xOzf', join(folder, `sluice-${version}.tgz`), 'package/package.json']),
    run('tar', ['-xOzf', join(folder, `sluice-chart-${version}.tgz`), 'sluice/values.yaml']),
  ].join('\n')
  const wanted = [
    `"name": "${names.package}"`,
    ...(names.image === undefined ? [] : [`repository: ${names.image}\n`]),
  ]
  return wanted
    .filter((text) => !held.includes(text))
    .map((text) => `the files were made without ${text.trim()}: make them with this owner and registry`)
}

/** Pushes parts of a release, one after the other. */
function push(wanted: readonly Part[], files: Pick<Push, 'names' | 'version' | 'folder'>): void {
  const how: Push = {
    ...files,
    commit: run('git', ['rev-parse', 'HEAD']).trim(),
    date: run('git', ['log', '-1', '--format=%cI']).trim(),
    builder: flags.builder === 'buildah' ? 'buildah' : 'docker',
    helm,
    platforms: flags.platforms,
    buildPlatform: `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    buildArgs: flags['build-arg'],
    isPlain: flags['plain-http'],
  }
  for (const part of wanted) {
    if (part === 'package' && isPublished(how)) {
      console.log(`the package ${how.names.package}@${how.version} is published already`)
      continue
    }
    for (const [program, ...args] of pushCommands(part, how)) show(program, args)
    console.log(`pushed the ${part}`)
  }
}

/** A version of a package is published once. So a second try after a failure must not publish it again. */
function isPublished({ names, version }: Push): boolean {
  const { stdout } = spawnSync('npm', ['view', `${names.package}@${version}`, 'version'], {
    cwd: root,
    encoding: 'utf8',
  })
  return stdout.trim() === version
}

function planHere(expectedTag: string | undefined): ReleasePlan {
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
    expectedTag,
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
function makeFiles(
  { version, notes }: ReleasePlan,
  names: ReleaseNames,
  folder: string,
): readonly Artifact[] {
  const helmVersion = run(helm, ['version', '--short']).trim()
  packPackage(version, names, folder)
  // npm and helm both name their file sluice-VERSION.tgz, so the chart is made in another folder and renamed.
  const apart = join(folder, 'chart')
  run(helm, ['package', releasedChart(version, names, apart), '--destination', apart])
  renameSync(join(apart, `sluice-${version}.tgz`), join(folder, `sluice-chart-${version}.tgz`))
  rmSync(apart, { recursive: true })
  run(process.execPath, ['scripts/sbom.ts', join(folder, `sluice-${version}.cdx.json`)])
  const commit = run('git', ['rev-parse', 'HEAD']).trim()
  const statement = provenanceOf({
    artifacts: artifactsIn(folder),
    version,
    commit,
    repository: names.repository,
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

/** Packs the package. Its file is `sluice-VERSION.tgz`, whatever its name is at npm. */
function packPackage(version: string, names: ReleaseNames, folder: string): void {
  const packed = join(folder, `sluice-${version}.tgz`)
  run('npm', ['pack', '--loglevel=error', '--pack-destination', folder])
  if (names.package === undefined) return
  const apart = mkdtempSync(join(tmpdir(), 'sluice-package-'))
  try {
    run('tar', ['-xzf', packed, '-C', apart])
    const manifest = join(apart, 'package/package.json')
    change(manifest, (text) => namedManifest(text, names))
    const options = ['--loglevel=error', '--ignore-scripts', '--pack-destination', apart]
    run('npm', ['pack', ...options, join(apart, 'package')])
    const file = `${names.package.slice(1).replace('/', '-')}-${version}.tgz`
    cpSync(join(apart, file), packed)
  } finally {
    rmSync(apart, { recursive: true })
  }
}

/**
 * Copies the chart into `folder`, and returns the path of the copy. The copy names the image and the repository of the
 * release. Its alerts lead to the runbooks of this version in the repository.
 */
function releasedChart(version: string, names: ReleaseNames, folder: string): string {
  const copy = join(folder, 'sluice')
  cpSync(join(root, 'deploy/helm/sluice'), copy, { recursive: true })
  change(join(copy, 'values.yaml'), (values) => namedValues(values, names, version))
  change(join(copy, 'Chart.yaml'), (chart) => namedChart(chart, names))
  return copy
}

function change(file: string, edit: (text: string) => string): void {
  writeFileSync(file, edit(readFileSync(file, 'utf8')))
}

function artifactsIn(folder: string): readonly Artifact[] {
  return readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, sha256: digest(readFileSync(join(folder, name))) }))
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Returns the URL of the remote `origin`, or an empty text. */
function remoteUrl(): string {
  const { stdout, status } = spawnSync('git', ['remote', 'get-url', 'origin'], {
    cwd: root,
    encoding: 'utf8',
  })
  return status === 0 ? stdout.trim() : ''
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

/** Runs a command that takes long, and shows what it prints. */
function show(command: string, args: readonly string[]): void {
  console.log(`> ${[command, ...args].join(' ')}`)
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (error !== undefined) throw new Error(`${command} can not be run, install it: ${error.message}`)
  if (status !== 0)
    throw new Error(
      `${command} has failed, see above. What was pushed before stays; push the rest with --files FOLDER --push PARTS`,
    )
}
