import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { installTools, type Ran, runTool } from './tools.ts'

/** Tests of `npm run release`, in a clone of the last commit of this repository. */

const root = resolve(import.meta.dirname, '../..')

let scratch: string
let clone: string
let helm: string

beforeAll(async () => {
  helm = (await installTools()).helm
  scratch = mkdtempSync(join(tmpdir(), 'sluice-release-test-'))
  clone = join(scratch, 'clone')
  await promisify(execFile)('git', ['clone', '--quiet', '--no-tags', root, clone])
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  await git('config', 'user.name', 'Nobody')
  await git('config', 'user.email', 'nobody@example.com')
  await git('remote', 'set-url', 'origin', 'https://me:key@git.example/team/sluice.git')
})

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

async function git(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', [...args], { cwd: clone })
  return stdout.trim()
}

function release(...args: readonly string[]): Promise<Ran> {
  return releaseAs({ RELEASE_OWNER: '', RELEASE_REGISTRY: '' }, ...args)
}

function releaseAs(publisher: Record<string, string>, ...args: readonly string[]): Promise<Ran> {
  // A workflow that runs these tests sets GITHUB_RUN_ID, and names a publisher. The script must not see these.
  const env = { HELM: helm, GITHUB_RUN_ID: '', ...publisher }
  return runTool(process.execPath, [join(clone, 'scripts/release.ts'), ...args], { env })
}

type Step = { run?: string; uses?: string; env?: Record<string, string> }
type Job = { needs?: string | string[]; if?: string; permissions: Record<string, string>; steps: Step[] }

function jobs(): Record<string, Job> {
  const { jobs: all }: { jobs: Record<string, Job> } = parse(
    readFileSync(join(root, '.github/workflows/release.yml'), 'utf8'),
  )
  return all
}

function commandsOf(job: Job | undefined): string {
  return (job?.steps ?? []).map(({ run = '' }) => run).join('\n')
}

/**
 * Returns the names of the files that the workflow attaches to the release, apart from the notes. The names
 * are relative to the folder of the release.
 */
function attachedFiles(): string {
  const files = commandsOf(jobs()['release']).matchAll(/ release\/(\S+)/g)
  return [...files]
    .map(([, name]) => name)
    .filter((name) => name !== 'notes.md')
    .join(' ')
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

test('a release is prepared, tried, made and tagged; its files are whole, and say where they are from', async () => {
  expect(await release('--prepare', '9.8.7')).toMatchObject({ isOk: true })
  const unready = await release('--dry-run')
  expect(unready.isOk).toBe(false)
  expect(unready.text).toContain('the tree has changes')
  await git('commit', '--quiet', '-am', 'chore: release 9.8.7')

  expect(await release('--dry-run')).toMatchObject({ isOk: true })
  expect(await git('status', '--porcelain')).toBe('')
  expect(await git('tag')).toBe('')

  const made = await release()
  expect(made).toMatchObject({ isOk: true })
  expect(await git('status', '--porcelain')).toBe('')
  const head = await git('rev-parse', 'HEAD')
  expect(await git('rev-parse', 'v9.8.7^{commit}')).toBe(head)
  expect(await git('cat-file', '-t', 'v9.8.7')).toBe('tag')
  const folder = join(clone, 'release/9.8.7')
  expect(readdirSync(folder).toSorted()).toEqual([
    'SHA256SUMS',
    'notes.md',
    'sluice-9.8.7.cdx.json',
    'sluice-9.8.7.intoto.json',
    'sluice-9.8.7.tgz',
    'sluice-chart-9.8.7.tgz',
  ])
  // Users download the files that the workflow attaches. These are all files but the notes, which become the
  // text of the release.
  const attached = join(scratch, 'attached')
  const { isOk: areSumsRight } = await runTool('sh', [
    '-c',
    `mkdir '${attached}' && cd '${folder}' && cp ${attachedFiles()} '${attached}' && cd '${attached}' && sha256sum --check --strict SHA256SUMS`,
  ])
  expect(areSumsRight).toBe(true)
  expect(await git('tag', '-l', '--format=%(contents)', 'v9.8.7')).toContain(
    readFileSync(join(folder, 'notes.md'), 'utf8').split('\n')[2],
  )

  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'))
  const statement = read('sluice-9.8.7.intoto.json')
  expect(statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: { runDetails: { builder: { id: 'urn:sluice:by-hand' } } },
  })
  expect(statement.predicate.buildDefinition.resolvedDependencies).toEqual([
    { uri: 'git+https://git.example/team/sluice@refs/tags/v9.8.7', digest: { gitCommit: head } },
    { uri: 'package-lock.json', digest: { sha256: sha256(readFileSync(join(clone, 'package-lock.json'))) } },
  ])
  for (const { name, digest } of statement.subject)
    expect([name, digest.sha256]).toEqual([name, sha256(readFileSync(join(folder, name)))])
  expect(statement.subject).toHaveLength(3)
  expect(read('sluice-9.8.7.cdx.json').metadata.component).toMatchObject({ name: 'sluice', version: '9.8.7' })

  const { text: chart } = await runTool(helm, ['show', 'chart', join(folder, 'sluice-chart-9.8.7.tgz')])
  expect(chart).toMatch(/^appVersion: 9\.8\.7$/m)
  const { text: values } = await runTool(helm, ['show', 'values', join(folder, 'sluice-chart-9.8.7.tgz')])
  expect(values).toContain('runbookBaseUrl: https://git.example/team/sluice/blob/v9.8.7/deploy/runbooks\n')
  const { text: packed } = await runTool('tar', [
    '-xOzf',
    join(folder, 'sluice-9.8.7.tgz'),
    'package/package.json',
    'package/dist/build.json',
  ])
  expect(packed).toContain('"version": "9.8.7"')
  expect(packed).toContain(`"commit":"${head.slice(0, 12)}"`)

  const again = await release('--dry-run')
  expect(again.isOk).toBe(false)
  expect(again.text).toContain('the tag v9.8.7 exists')
  expect(await release('--tagged', 'v9.8.7', '--out', join(scratch, 'files'))).toMatchObject({ isOk: true })
  expect(readdirSync(join(scratch, 'files'))).toHaveLength(6)

  const acme = { RELEASE_OWNER: 'Acme', RELEASE_REGISTRY: 'registry.example.com:5000' }
  const ours = join(scratch, 'ours')
  expect(await releaseAs(acme, '--tagged', 'v9.8.7', '--out', ours)).toMatchObject({ isOk: true })
  const show = async (file: string, inside: string) =>
    (await runTool('tar', ['-xOzf', join(ours, file), inside])).output
  expect(JSON.parse(await show('sluice-9.8.7.tgz', 'package/package.json'))).toMatchObject({
    name: '@acme/sluice',
    homepage: 'https://git.example/Acme/sluice',
    repository: { url: 'git+https://git.example/Acme/sluice.git' },
  })
  expect(await show('sluice-9.8.7.tgz', 'package/package.json')).not.toContain('"private"')
  expect(await show('sluice-chart-9.8.7.tgz', 'sluice/values.yaml')).toContain(
    'repository: registry.example.com:5000/acme/sluice\n',
  )
  expect(await show('sluice-chart-9.8.7.tgz', 'sluice/values.yaml')).toContain(
    'runbookBaseUrl: https://git.example/Acme/sluice/blob/v9.8.7/deploy/runbooks\n',
  )
  expect(await show('sluice-chart-9.8.7.tgz', 'sluice/Chart.yaml')).toContain(
    'home: https://git.example/Acme/sluice\n',
  )

  // What is pushed must be what was made, for the same owner.
  const others = { ...acme, RELEASE_OWNER: 'others' }
  expect((await releaseAs(others, '--push', 'package', '--files', ours)).text).toContain(
    'the files were made without "name": "@others/sluice"',
  )
  appendFileSync(join(ours, 'sluice-9.8.7.tgz'), 'x')
  expect((await releaseAs(acme, '--push', 'package', '--files', ours)).text).toContain(
    'the file has changed since: sluice-9.8.7.tgz',
  )

  await git('commit', '--quiet', '--allow-empty', '-m', 'later')
  expect((await release('--tagged', 'v9.8.7')).text).toContain('the tag v9.8.7 is not on')
})

test('nothing is made if it could not be pushed, and the reasons come together', async () => {
  const { isOk, text } = await releaseAs(
    { RELEASE_OWNER: '', RELEASE_REGISTRY: 'https://registry' },
    '--push',
    'all',
  )
  expect(isOk).toBe(false)
  expect(text).toContain('RELEASE_OWNER is not set')
  expect(text).toContain('RELEASE_REGISTRY is https://registry: expected HOST or HOST:PORT')
  expect((await release('--push', 'chart,wheel')).text).toContain(
    '--push takes all, or some of image, chart and package',
  )
})

test('a version that the chart does not have is not released', async () => {
  writeFileSync(
    join(clone, 'package.json'),
    readFileSync(join(clone, 'package.json'), 'utf8').replace(/"version": ".*"/, '"version": "9.9.0"'),
  )
  const { isOk, text } = await release()
  expect(isOk).toBe(false)
  expect(text).toContain('Chart.yaml (version) says 9.8.7, package.json 9.9.0')
  expect(text).toContain('CHANGELOG.md has no section "## 9.9.0 - DATE"')
  expect(text).toContain('the tree has changes')
  expect(await git('tag')).toBe('v9.8.7')
})

describe('the workflow', () => {
  test('publishes nothing that has not passed all that a change must pass', () => {
    const { check, ...others } = jobs()
    expect(commandsOf(check)).toContain('.ci/run')
    expect(others['release']?.needs).toBe('check')
    for (const { needs = [] } of Object.values(others)) expect([needs].flat().length).toBeGreaterThan(0)
  })

  test('pushes the image and the chart of the release, where a variable of the repository names a registry', () => {
    const { image, release: made } = jobs()
    expect(image).toMatchObject({ needs: 'release', if: "vars.RELEASE_REGISTRY != ''" })
    expect(commandsOf(image)).toContain('gh release download "$GITHUB_REF_NAME" --dir release')
    expect(commandsOf(image)).toContain('node scripts/release.ts --push image,chart --files release')
    expect(commandsOf(made)).toContain('npm run release -- --push package --files release')
  })

  test('has one variable for all names', () => {
    const { env }: { env: Record<string, string> } = parse(
      readFileSync(join(root, '.github/workflows/release.yml'), 'utf8'),
    )
    expect(env).toEqual({
      RELEASE_OWNER: '${{ vars.RELEASE_OWNER || github.repository_owner }}',
      RELEASE_REGISTRY: '${{ vars.RELEASE_REGISTRY }}',
    })
  })
})
