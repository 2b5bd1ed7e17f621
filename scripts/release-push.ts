import { join } from 'node:path'
import type { ReleaseNames } from './release-names.ts'

/** How the parts of a release are pushed. The functions here are pure. */

export const parts = ['image', 'chart', 'package'] as const
export type Part = (typeof parts)[number]

/** The programs that can build the image and push it. */
export const builders = ['docker', 'buildah'] as const
export type Builder = (typeof builders)[number]

export type Command = readonly [program: string, ...args: string[]]

export type Push = {
  readonly names: ReleaseNames
  readonly version: string
  /** The commit, 40 hex digits, and its date in ISO 8601. */
  readonly commit: string
  readonly date: string
  /** The folder with the files of the release. */
  readonly folder: string
  readonly builder: Builder
  /** The path of Helm. */
  readonly helm: string
  /** The platforms of the image, such as `linux/amd64,linux/arm64`. */
  readonly platforms: string
  /** The platform that the image is built on, such as `linux/amd64`. */
  readonly buildPlatform: string
  /** Further arguments of the image's build, as `NAME=VALUE`. */
  readonly buildArgs: readonly string[]
  /** Talks to the registry of image and chart over http. */
  readonly isPlain: boolean
}

/**
 * Reads what `--push` names: `all`, or some of the parts, separated by commas. Returns them in the order in which they
 * are pushed: the chart names the image, so the image comes first. Returns `undefined` for anything else.
 */
export function partsOf(text: string): readonly Part[] | undefined {
  const named = new Set(text === 'all' ? parts : text.split(','))
  const known = parts.filter((part) => named.has(part))
  return known.length === named.size ? known : undefined
}

/** Returns why these parts can't be pushed, each with what to do. */
export function pushFaults(
  wanted: readonly Part[],
  { package: name, image }: ReleaseNames,
): readonly string[] {
  if (name === undefined)
    return [
      'RELEASE_OWNER is not set: set it to the name of who publishes, such as acme, and make the release with it',
    ]
  return image === undefined && wanted.some((part) => part !== 'package')
    ? ['RELEASE_REGISTRY is not set: set it to the registry of image and chart, as HOST or HOST:PORT']
    : []
}

/** Returns the commands that push a part. */
export function pushCommands(part: Part, push: Push): readonly Command[] {
  switch (part) {
    case 'image':
      return push.builder === 'docker' ? withDocker(push) : withBuildah(push)
    case 'chart':
      return [withHelm(push)]
    case 'package':
      return [withNpm(push)]
  }
}

/** No command of the build runs in the architecture of the image, so this needs no emulation. */
function withDocker(push: Push): readonly Command[] {
  const about = ['--provenance=mode=max', '--sbom=true']
  const where = ['--push', '--tag', tagOf(push)]
  return [['docker', 'buildx', 'build', ...sourceOf(push), ...about, ...where, ...buildArgsOf(push), '.']]
}

function withBuildah(push: Push): readonly Command[] {
  const tag = tagOf(push)
  const given = ['--build-arg', `BUILDPLATFORM=${push.buildPlatform}`, ...buildArgsOf(push)]
  const tls = push.isPlain ? ['--tls-verify=false'] : []
  return [
    ['buildah', 'build', ...sourceOf(push), '--manifest', tag, ...given, '.'],
    ['buildah', 'manifest', 'push', '--all', ...tls, tag, `docker://${tag}`],
  ]
}

function sourceOf({ platforms }: Push): readonly string[] {
  return ['--platform', platforms, '--file', 'deploy/Dockerfile']
}

function tagOf({ names, version }: Push): string {
  return `${names.image}:${version}`
}

function buildArgsOf({ commit, date, version, names, buildArgs }: Push): readonly string[] {
  const told = {
    BUILD_COMMIT: commit,
    BUILD_DATE: date,
    BUILD_VERSION: version,
    BUILD_SOURCE: names.repository,
  }
  const all = [...Object.entries(told).map(([name, value]) => `${name}=${value}`), ...buildArgs]
  return all.flatMap((one) => ['--build-arg', one])
}

function withHelm({ helm, folder, version, names, isPlain }: Push): Command {
  const file = join(folder, `sluice-chart-${version}.tgz`)
  return [helm, 'push', file, names.charts ?? '', ...(isPlain ? ['--plain-http'] : [])]
}

/** A version such as 1.2.3-rc.1 isn't what `npm install` takes without being asked for it. */
function withNpm({ folder, version }: Push): Command {
  const tag = version.includes('-') ? 'next' : 'latest'
  return ['npm', 'publish', join(folder, `sluice-${version}.tgz`), '--access', 'public', '--tag', tag]
}
