import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Image } from './image.ts'

/** A file or folder of this machine, and where a container sees it. */
export type Mount = { from: string; to: string; isWritable?: boolean }

export type ContainerPlan = {
  args: readonly string[]
  env: Readonly<Record<string, string>>
  mounts?: readonly Mount[]
  /** In place of the image's own. */
  entrypoint?: readonly string[]
}

export type Container = {
  /** All that it has written so far. */
  readonly said: string
  /** Its exit code, when it ends. */
  ended: Promise<number | null>
  /** Sends SIGTERM to its process 1, and gives the exit code and how long it took. */
  terminate(): Promise<{ code: number | null; tookMs: number }>
}

/**
 * Runs an image by runc, as a kubelet asks for it: the image's user without any capability, its tree read-only, process 1 of its own,
 * `/tmp` in memory. The network is the machine's.
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

/** Runs it to its end, and gives what it said; throws where its exit code isn't 0. */
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
