import { join, resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { kubernetesVersions, type Ran, runTool, type Tools } from './tools.ts'

export const chart = resolve(import.meta.dirname, '../../deploy/helm/sluice')

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
  envFrom?: { secretRef: { name: string } }[]
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
}

export type Resource = {
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  spec: Record<string, unknown>
}

/** `helm template` of the release `release` in the namespace `sluice`. */
export function helmTemplate({ helm }: Tools, args: readonly string[]): Promise<Ran> {
  const version = kubernetesVersions.at(-1) ?? ''
  const release = ['template', 'release', chart, '--namespace', 'sluice', '--kube-version', version]
  return runTool(helm, [...release, ...args])
}

/** What the chart makes of values; those of `minimal-values.yaml` where nothing else is said. */
export async function render(tools: Tools, ...args: readonly string[]): Promise<Resource[]> {
  const { isOk, text } = await helmTemplate(tools, ['-f', join(chart, 'ci/minimal-values.yaml'), ...args])
  if (!isOk) throw new Error(text)
  return parseAllDocuments(text).flatMap((document): Resource[] => {
    const resource: Resource | null = document.toJS()
    return resource === null ? [] : [resource]
  })
}

/** The one of this kind; throws where there are more, or none. */
export function only(resources: readonly Resource[], kind: string): Resource {
  const [first, ...others] = resources.filter((resource) => resource.kind === kind)
  if (first === undefined || others.length > 0) throw new Error(`not exactly one ${kind}`)
  return first
}

export function podOf({ spec }: Resource): Pod {
  const { template }: { template: { spec: Pod } } = Object(spec)
  return template.spec
}

export function podsOf(resources: readonly Resource[]): Pod[] {
  return resources.filter(({ kind }) => ['StatefulSet', 'Deployment', 'Job'].includes(kind)).map(podOf)
}
