import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ContainerPlan, Mount } from '../support/container.ts'
import type { Container, Pod, Probe, Variable, Volume } from './render.ts'

/** Secrets, ConfigMaps and claims, as templates or an API server give them. */
export type Referred = {
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
}

/** Where a pod runs: `folder` holds its volumes; `claims` has the folder of a claim that is bound. */
export type Place = {
  folder: string
  podName: string
  resources: readonly Referred[]
  claims?: ReadonlyMap<string, string>
}

/** What a kubelet makes of a pod of the chart: its variables, arguments and volumes. Throws for what the pod refers to and isn't there. */
export function planOf(pod: Pod, place: Place): ContainerPlan {
  const [container] = pod.containers
  const { fsGroup }: { fsGroup?: number } = pod.securityContext
  const mounts = container.volumeMounts.flatMap(({ name, mountPath, readOnly = false }): Mount[] => {
    const volume = pod.volumes.find((one) => one.name === name)
    // The runtime has its own.
    if (mountPath === '/tmp') return []
    const from = folderOf(name, volume, place)
    giveTo(from, fsGroup ?? 0)
    return [{ from, to: mountPath, isWritable: !readOnly }]
  })
  return { args: container.args, env: variablesOf(container, place), mounts }
}

function variablesOf({ env, envFrom = [] }: Container, place: Place): Record<string, string> {
  const whole = envFrom.flatMap(({ secretRef }) => Object.entries(dataOf('Secret', secretRef.name, place)))
  const variables: Record<string, string> = Object.fromEntries(whole)
  // Each may refer to those before it, as $(POD_NAME).
  for (const one of env)
    variables[one.name] = valueOf(one, place).replaceAll(
      /\$\((\w+)\)/g,
      (all, name: string) => variables[name] ?? all,
    )
  return variables
}

function valueOf({ name, value = '', valueFrom }: Variable, place: Place): string {
  if (valueFrom === undefined) return value
  const { fieldRef, secretKeyRef, configMapKeyRef } = valueFrom
  if (fieldRef?.fieldPath === 'metadata.name') return place.podName
  const data =
    secretKeyRef === undefined
      ? dataOf('ConfigMap', configMapKeyRef?.name ?? '', place)
      : dataOf('Secret', secretKeyRef.name, place)
  const found = data[(secretKeyRef ?? configMapKeyRef)?.key ?? '']
  if (found === undefined) throw new Error(`${name} of ${place.podName} refers to what isn't there`)
  return found
}

/** The texts of a Secret or a ConfigMap. */
function dataOf(kind: 'Secret' | 'ConfigMap', name: string, { resources }: Place): Record<string, string> {
  const found = resources.find((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`)
  const decode = (text: string): string => (kind === 'Secret' ? Buffer.from(text, 'base64').toString() : text)
  return Object.fromEntries(Object.entries(found.data ?? {}).map(([key, text]) => [key, decode(text)]))
}

type Source = { name?: string; secretName?: string; claimName?: string }

function folderOf(name: string, volume: Volume | undefined, place: Place): string {
  const claim: Source = volume?.['persistentVolumeClaim'] ?? {}
  const bound = place.claims?.get(claim.claimName ?? '')
  if (bound !== undefined) return bound
  const from = join(place.folder, place.podName, name)
  mkdirSync(from, { recursive: true })
  const map: Source = volume?.['configMap'] ?? {}
  if (map.name !== undefined) projectConfigMap(from, dataOf('ConfigMap', map.name, place))
  const secret: Source = volume?.['secret'] ?? {}
  if (secret.secretName !== undefined)
    projectConfigMap(from, dataOf('Secret', secret.secretName, place), 0o440)
  return from
}

/** All in it is the group's, which the pod's processes are in. */
function giveTo(folder: string, group: number): void {
  for (const path of ['.', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })]) {
    // Links lead to files that are in the list themselves.
    if (!path.startsWith('..generation') && path !== '.') continue
    chownSync(join(folder, path), 0, group)
  }
  chmodSync(folder, 0o2775)
}

let generation = 0

/** Writes it as a kubelet does: all files change at once, by a link that points elsewhere. */
export function projectConfigMap(folder: string, data: Readonly<Record<string, string>>, mode = 0o644): void {
  const next = `..generation-${++generation}`
  mkdirSync(join(folder, next))
  for (const [file, text] of Object.entries(data)) {
    writeFileSync(join(folder, next, file), text)
    chmodSync(join(folder, next, file), mode)
  }
  symlinkSync(next, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  for (const file of Object.keys(data)) {
    symlinkSync(join('..data', file), join(folder, `${file}.tmp`))
    renameSync(join(folder, `${file}.tmp`), join(folder, file))
  }
}

/** Asks as a kubelet does: the pod's address, and the port by its number or name. True for an answer from 200 to 399. */
export async function probe(
  pod: Pod,
  which: 'livenessProbe' | 'readinessProbe',
  address: string,
): Promise<boolean> {
  const [{ ports = [], ...container }] = pod.containers
  const asked: Probe | undefined = container[which]
  if (asked === undefined) throw new Error(`the pod has no ${which}`)
  const { path, port } = asked.httpGet
  const number = ports.find(({ name }) => name === port)?.containerPort ?? Number(port)
  const { status } = await fetch(`http://${address}:${number}${path}`, { redirect: 'manual' })
  return status >= 200 && status < 400
}
