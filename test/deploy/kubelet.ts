import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ContainerPlan, Mount } from '../support/container.ts'
import type { Container, Pod, Probe, Variable, Volume } from './render.ts'

/** A Secret, ConfigMap or claim, as a template or an API server gives it. */
export type Referred = {
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
}

/**
 * The place where a pod runs. `folder` holds the volumes of the pod. `claims` has the folder of each claim
 * that is bound, by the name of the claim.
 */
export type Place = {
  folder: string
  podName: string
  resources: readonly Referred[]
  claims?: ReadonlyMap<string, string>
}

/**
 * Returns the variables, arguments and volumes that a kubelet gives to a pod of the chart. Throws if the pod
 * refers to something that doesn't exist.
 */
export function planOf(pod: Pod, place: Place): ContainerPlan {
  const [container] = pod.containers
  const { fsGroup }: { fsGroup?: number } = pod.securityContext
  const mounts = container.volumeMounts.flatMap(({ name, mountPath, readOnly = false }): Mount[] => {
    const volume = pod.volumes.find((one) => one.name === name)
    // The container runtime provides its own `/tmp`.
    if (mountPath === '/tmp') return []
    const from = folderOf(name, volume, place)
    giveTo(from, fsGroup ?? 0)
    return [{ from, to: mountPath, isWritable: !readOnly }]
  })
  return { args: container.args, env: variablesOf(container, place), mounts }
}

function variablesOf({ env }: Container, place: Place): Record<string, string> {
  const variables: Record<string, string> = {}
  // A variable may refer to the variables before it, for example as `$(POD_NAME)`.
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

/** Returns the decoded texts of a Secret or a ConfigMap. Throws if it doesn't exist. */
function dataOf(kind: 'Secret' | 'ConfigMap', name: string, { resources }: Place): Record<string, string> {
  const found = resources.find((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`)
  const decode = (text: string): string => (kind === 'Secret' ? Buffer.from(text, 'base64').toString() : text)
  return Object.fromEntries(Object.entries(found.data ?? {}).map(([key, text]) => [key, decode(text)]))
}

/** The Secret that the chart's Job makes in a release of the name `release`. */
export const madeUserKey: Referred = {
  kind: 'Secret',
  metadata: { name: 'release-sluice-user-key' },
  data: { 'user-key': Buffer.from('a key of more than sixteen characters').toString('base64') },
}

type Source = {
  name?: string
  secretName?: string
  claimName?: string
  items?: { key: string; path: string }[]
}

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
    projectConfigMap(from, chosen(dataOf('Secret', secret.secretName, place), secret), 0o440)
  return from
}

/** Returns the chosen keys of a Secret under their paths. Throws if one is missing: a pod would then never start. */
function chosen(data: Record<string, string>, { secretName, items }: Source): Record<string, string> {
  if (items === undefined) return data
  return Object.fromEntries(
    items.map(({ key, path }) => {
      const text = data[key]
      if (text === undefined) throw new Error(`the Secret ${secretName} has no key ${key}`)
      return [path, text]
    }),
  )
}

/** Gives a folder, and all that is in it, to the group that the processes of the pod are in. */
function giveTo(folder: string, group: number): void {
  for (const path of ['.', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })]) {
    // Links are skipped, because the files that they lead to are in the list themselves.
    if (!path.startsWith('..generation') && path !== '.') continue
    chownSync(join(folder, path), 0, group)
  }
  chmodSync(folder, 0o2775)
}

let generation = 0

/**
 * Writes the files of a ConfigMap or a Secret as a kubelet does. All files change at once, because a link is
 * made to point to another folder.
 */
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

/**
 * Sends a probe of the pod as a kubelet does: to the address of the pod, and to the port by its number or
 * name. Returns true for a status from 200 to 399.
 */
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
