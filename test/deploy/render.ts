import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { kubernetesVersions, type Ran, runTool, type Tools } from './tools.ts'

export const chart = resolve(import.meta.dirname, '../../deploy/helm/sluice')

const minimal = join(chart, 'ci/minimal-values.yaml')

function newest(): string {
  return kubernetesVersions.at(-1) ?? ''
}

type KeyRef = { name: string; key: string }
export type Variable = {
  name: string
  value?: string
  valueFrom?: { fieldRef?: { fieldPath: string }; secretKeyRef?: KeyRef; configMapKeyRef?: KeyRef }
}
export type Probe = { httpGet: { path: string; port: string | number } }
export type VolumeMount = { name: string; mountPath: string; readOnly?: boolean }
export type Volume = { name: string } & Record<string, object>

export type Container = {
  name: string
  args: string[]
  env: Variable[]
  securityContext: object
  volumeMounts: VolumeMount[]
  ports?: { name: string; containerPort: number }[]
  livenessProbe?: Probe
  readinessProbe?: Probe
}

export type Pod = {
  terminationGracePeriodSeconds: number
  automountServiceAccountToken: boolean
  enableServiceLinks: boolean
  securityContext: object
  containers: [Container]
  volumes: Volume[]
  nodeSelector?: object
  tolerations?: object[]
  affinity?: object
  priorityClassName?: string
}

export type Resource = {
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  spec: Record<string, unknown>
}

/** Runs `helm template` for the release `release` in the namespace `sluice`. */
export function helmTemplate({ helm }: Tools, args: readonly string[]): Promise<Ran> {
  const release = ['template', 'release', chart, '--namespace', 'sluice', '--kube-version', newest()]
  return runTool(helm, [...release, ...args])
}

/**
 * Returns the resources that the chart makes of values. A value that `args` don't set has the value of
 * `minimal-values.yaml`. Throws if Helm fails.
 */
export async function render(tools: Tools, ...args: readonly string[]): Promise<Resource[]> {
  const { isOk, text } = await helmTemplate(tools, ['-f', minimal, ...args])
  if (!isOk) throw new Error(text)
  return parseAllDocuments(text).flatMap((document): Resource[] => {
    const resource: Resource | null = document.toJS()
    return resource === null ? [] : [resource]
  })
}

/**
 * Returns the notes that Helm prints after an install with these values. `helm template` leaves the notes
 * out.
 */
export async function renderNotes({ helm }: Tools, ...args: readonly string[]): Promise<string> {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-notes-'))
  try {
    cpSync(chart, copy, { recursive: true })
    cpSync(join(chart, 'templates/NOTES.txt'), join(copy, 'NOTES.txt'))
    const text = '{{ tpl (.Files.Get "NOTES.txt") . | quote }}'
    writeFileSync(join(copy, 'templates/told.yaml'), `kind: Notes\nmetadata: { name: told }\ntext: ${text}\n`)
    const told = ['--show-only', 'templates/told.yaml']
    const release = ['template', 'release', copy, '--namespace', 'sluice', '--kube-version', newest()]
    const ran = await runTool(helm, [...release, ...told, '-f', minimal, ...args])
    if (!ran.isOk) throw new Error(ran.text)
    const [document] = parseAllDocuments(ran.output)
    const { text: notes }: { text: string } = Object(document?.toJS())
    return notes
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** Returns the only resource of this kind. Throws if there is none, or more than one. */
export function only(resources: readonly Resource[], kind: string): Resource {
  const [first, ...others] = resources.filter((resource) => resource.kind === kind)
  if (first === undefined || others.length > 0) throw new Error(`not exactly one ${kind}`)
  return first
}

/** Returns the first resource of a kind whose name ends with `end`. Throws if there is none. */
export function ofName(resources: readonly Resource[], kind: string, end: string): Resource {
  const found = resources.find((one) => one.kind === kind && one.metadata.name.endsWith(end))
  if (found === undefined) throw new Error(`there is no ${kind} …${end}`)
  return found
}

export function podOf({ spec }: Resource): Pod {
  const { template }: { template: { spec: Pod } } = Object(spec)
  return template.spec
}

/** Returns all pods. */
export function allPodsOf(resources: readonly Resource[]): Pod[] {
  return resources.filter(({ kind }) => ['StatefulSet', 'Deployment', 'Job'].includes(kind)).map(podOf)
}

/** Returns the pods that talk to Kafka: all but that of the Job that makes the key for users. */
export function podsOf(resources: readonly Resource[]): Pod[] {
  return allPodsOf(resources.filter(({ kind, metadata }) => kind !== 'Job' || !isOfUserKey(metadata.name)))
}

function isOfUserKey(name: string): boolean {
  return name.endsWith('-user-key')
}

/** Returns the value of a variable of a pod's container. */
export function valueOf(pod: Pod, name: string): string | undefined {
  return pod.containers[0].env.find((one) => one.name === name)?.value
}
