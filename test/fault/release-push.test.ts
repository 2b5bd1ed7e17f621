import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installTools, type Ran, runTool } from '../deploy/tools.ts'
import { type ImageBuilds, prepareImageBuilds } from '../support/image.ts'
import { folderBelowNoPackages, withoutNpmSettings } from '../support/installed-package.ts'
import { crane, type Registry, startImageRegistry, startPackageRegistry } from '../support/registries.ts'

/**
 * `npm run release -- --push all`, in a clone of the last commit, against registries that run here: everything is
 * published under the names of one owner, and can be installed from there.
 */

const root = resolve(import.meta.dirname, '../..')
const buildMs = 20 * 60_000

let scratch: string
let clone: string
let helm: string
let images: Registry
let packages: Registry
let builds: ImageBuilds

beforeAll(async () => {
  helm = (await installTools()).helm
  scratch = mkdtempSync(join(folderBelowNoPackages(), 'sluice-push-'))
  for (const name of ['images', 'packages']) mkdirSync(join(scratch, name))
  images = await startImageRegistry(join(scratch, 'images'))
  packages = await startPackageRegistry(join(scratch, 'packages'))
  builds = await prepareImageBuilds()
  clone = join(scratch, 'clone')
  await promisify(execFile)('git', ['clone', '--quiet', '--no-tags', root, clone])
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  await git('config', 'user.name', 'Nobody')
  await git('config', 'user.email', 'nobody@example.com')
  await git('remote', 'set-url', 'origin', 'https://git.example/team/sluice.git')
  const prepared = await release('--prepare', '9.8.7')
  if (!prepared.isOk) throw new Error(prepared.text)
  await git('commit', '--quiet', '-am', 'chore: release 9.8.7')
}, buildMs)

afterAll(async () => {
  await images.stop()
  await packages.stop()
  await builds.remove()
  rmSync(scratch, { recursive: true, force: true })
}, buildMs)

async function git(...args: readonly string[]): Promise<void> {
  await promisify(execFile)('git', [...args], { cwd: clone })
}

function release(...args: readonly string[]): Promise<Ran> {
  return runTool(process.execPath, [join(clone, 'scripts/release.ts'), ...args], {
    env: {
      ...npmHere(),
      ...builds.environment,
      HELM: helm,
      GITHUB_RUN_ID: '',
      RELEASE_OWNER: 'acme',
      RELEASE_REGISTRY: images.host,
    },
  })
}

/** Only packages of the owner come from the registry here. Their dependencies come from the usual one. */
function npmHere(): Record<string, string> {
  return {
    'npm_config_@acme:registry': `http://${packages.host}/`,
    // The registry takes packages from everybody, but npm wants to send a token.
    [`npm_config_//${packages.host}/:_authToken`]: 'none',
    npm_config_cache: join(scratch, 'npm-cache'),
  }
}

/** Runs a program as somebody who has never seen the checkout. Without a shell, which would drop variables of npm. */
function elsewhere(program: string, folder: string, ...args: readonly string[]): Promise<{ stdout: string }> {
  const env = { ...withoutNpmSettings(), ...npmHere() }
  return promisify(execFile)(program, [...args], { cwd: folder, env })
}

test(
  'a release is pushed, and package, image and chart can be had under the names of its owner',
  async () => {
    const pushing = await release(
      '--push',
      'all',
      '--builder',
      'buildah',
      '--platforms',
      'linux/amd64',
      '--plain-http',
      '--build-arg',
      'NODE_IMAGE=localhost/node',
      '--build-arg',
      'BASE_IMAGE=localhost/base-amd64',
    )
    expect([pushing.isOk, pushing.text]).toEqual([true, pushing.text])

    const program = await crane()
    const image = `${images.host}/acme/sluice:9.8.7`
    const { output: config } = await runTool(program, ['config', '--insecure', image])
    expect(JSON.parse(config).config.Labels).toMatchObject({
      'org.opencontainers.image.version': '9.8.7',
      'org.opencontainers.image.source': 'https://git.example/acme/sluice',
    })
    expect(await runTool(program, ['validate', '--insecure', '--remote', image])).toMatchObject({
      isOk: true,
    })

    const chart = `oci://${images.host}/acme/charts/sluice`
    const rendered = await runTool(helm, [
      'template',
      'sluice',
      chart,
      '--version',
      '9.8.7',
      '--plain-http',
      '--set',
      'kafka.brokers={kafka:9092}',
      '--set',
      'catalog.volume.secret.secretName=catalog',
    ])
    expect(rendered).toMatchObject({ isOk: true })
    expect(rendered.output).toContain(`image: ${image}\n`)

    const folder = join(scratch, 'user')
    mkdirSync(folder)
    writeFileSync(join(folder, 'package.json'), '{"private":true}')
    const npm = async (...args: string[]) => (await elsewhere('npm', folder, ...args)).stdout
    await npm('install', '--no-audit', '--no-fund', '--loglevel=error', '@acme/sluice@9.8.7')
    expect(existsSync(join(folder, 'node_modules/@acme/sluice/dist/main.js'))).toBe(true)
    expect(await npm('exec', '--', 'sluice', '--version')).toMatch(/^9\.8\.7 \(commit [0-9a-f]{12} /)
    expect(await npm('exec', '--', 'sluice', 'status', '--help')).toContain(
      'https://git.example/acme/sluice/blob/v9.8.7/docs/status.md',
    )
  },
  buildMs,
)

test(
  'without a checkout and without an installation, npx runs the package by its whole name',
  async () => {
    const folder = join(scratch, 'elsewhere')
    mkdirSync(folder)
    const { stdout } = await elsewhere('npx', folder, '--yes', '@acme/sluice@9.8.7', '--version')
    expect(stdout).toMatch(/^9\.8\.7 /)
  },
  buildMs,
)

test(
  'a second try publishes no package twice, and pushes the rest again',
  async () => {
    const again = await release(
      '--push=chart,package',
      `--files=${join(clone, 'release/9.8.7')}`,
      '--plain-http',
    )
    expect(again).toMatchObject({ isOk: true })
    expect(again.text).toContain('the package @acme/sluice@9.8.7 is published already')
    expect(again.text).toContain('pushed the chart')
  },
  buildMs,
)
