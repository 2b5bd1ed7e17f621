import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Image } from './image.ts'

/** A file or folder of this machine, and its path in the container. */
export type Mount = { from: string; to: string; isWritable?: boolean }

export type ContainerPlan = {
  args: readonly string[]
  env: Readonly<Record<string, string>>
  mounts?: readonly Mount[]
  /** Replaces the image's entrypoint. */
  entrypoint?: readonly string[]
}

export type Container = {
  /** The output of the container so far, from stdout and stderr. */
  readonly said: string
  /** Resolves with the exit code when the container ends. */
  ended: Promise<number | null>
  /**
   * Sends SIGTERM to process 1 of the container. Resolves with the exit code, and with the time until the
   * container ended, in milliseconds.
   */
  terminate(): Promise<{ code: number | null; tookMs: number }>
}

/**
 * Runs an image with runc, with the restrictions that a kubelet asks for. The container runs as the image's
 * user without any capability, with a read-only file system and its own process ids. Its `/tmp` is in memory.
 * The container uses the machine's network.
 */
export function startContainer(image: Image, plan: ContainerPlan): Container {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-container-'))
  writeFileSync(join(folder, 'config.json'), JSON.stringify(bundleOf(image, plan)))
  const id = folder.slice(folder.lastIndexOf('/') + 1)
  const child = spawn('runc', ['--root', join(folder, 'runc'), 'run', '--bundle', folder, id])
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = new Promise<number | null>((done) => child.once('close', (code) => done(code))).finally(() =>
    rmSync(folder, { recursive: true, force: true }),
  )
  return {
    get said() {
      return said
    },
    ended,
    async terminate() {
      const startedMs = performance.now()
      child.kill('SIGTERM')
      return { code: await ended, tookMs: performance.now() - startedMs }
    },
  }
}

/** Runs a container to its end, and returns its output. Throws if its exit code isn't 0. */
export async function runContainer(image: Image, plan: ContainerPlan): Promise<string> {
  const container = startContainer(image, plan)
  const code = await container.ended
  if (code !== 0) throw new Error(`${plan.args.join(' ')} ended with ${code}:\n${container.said}`)
  return container.said
}

function bundleOf({ config, tree }: Image, { args, env, mounts = [], entrypoint }: ContainerPlan): object {
  const [uid = 0, gid = 0] = config.User.split(':').map(Number)
  const none: string[] = []
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args: [...(entrypoint ?? config.Entrypoint), ...args],
      env: [...config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
      cwd: config.WorkingDir,
      capabilities: { bounding: none, effective: none, inheritable: none, permitted: none, ambient: none },
      noNewPrivileges: true,
    },
    root: { path: tree, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64k'] },
      { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['mode=1777'] },
      ...mounts.map(({ from, to, isWritable = false }) => ({
        destination: to,
        type: 'bind',
        source: from,
        options: ['rbind', isWritable ? 'rw' : 'ro'],
      })),
    ],
    linux: { namespaces: ['pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })) },
  }
}
