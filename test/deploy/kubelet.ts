import { chmodSync, chownSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ContainerPlan, Mount } from '../support/container.ts'
import type { Pod, Resource } from './render.ts'

/** What a kubelet makes of a pod of the chart: its variables, arguments and volumes, which lie in `folder`. */
export function planOf(
  pod: Pod,
  { folder, podName, resources }: { folder: string; podName: string; resources: readonly Resource[] },
): ContainerPlan {
  const [{ args, env, volumeMounts }] = pod.containers
  // The one reference that these values lead to is that to the pod's name.
  const variables = env.map(({ name, value = podName }) => [name, value])
  const mounts = volumeMounts.flatMap(({ name, mountPath, readOnly = false }): Mount[] => {
    const volume = pod.volumes.find((one) => one.name === name)
    // The runtime has its own.
    if (mountPath === '/tmp') return []
    const from = join(folder, podName, name)
    mkdirSync(from, { recursive: true })
    if (volume?.['configMap'] !== undefined) {
      const { name: map = '' }: { name?: string } = volume['configMap']
      projectConfigMap(
        from,
        resources.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === map)?.data ?? {},
      )
    }
    const { fsGroup }: { fsGroup?: number } = pod.securityContext
    chownSync(from, 0, fsGroup ?? 0)
    chmodSync(from, 0o2775)
    return [{ from, to: mountPath, isWritable: !readOnly }]
  })
  return { args, env: Object.fromEntries(variables), mounts }
}

let generation = 0

/** Writes it as a kubelet does: all files change at once, by a link that points elsewhere. */
export function projectConfigMap(folder: string, data: Readonly<Record<string, string>>): void {
  const next = `..generation-${++generation}`
  mkdirSync(join(folder, next))
  for (const [file, text] of Object.entries(data)) writeFileSync(join(folder, next, file), text)
  symlinkSync(next, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  for (const file of Object.keys(data)) {
    symlinkSync(join('..data', file), join(folder, `${file}.tmp`))
    renameSync(join(folder, `${file}.tmp`), join(folder, file))
  }
}
