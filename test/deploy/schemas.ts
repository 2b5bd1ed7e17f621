import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

type Definition = {
  spec: {
    group: string
    names: { kind: string }
    versions: { name: string; schema: { openAPIV3Schema: object } }[]
  }
}

/**
 * Writes a JSON Schema for each version of the custom resources that `files` define, and returns the folder.
 * The names are those that kubeconform asks for, for example `scaledobject-keda-v1alpha1.json`. Like a strict
 * API server, a schema allows no field that it doesn't list.
 */
export function writeCustomSchemas(files: readonly string[], scratch: string): string {
  const folder = join(scratch, 'custom')
  mkdirSync(folder)
  for (const file of files) {
    const { spec }: Definition = parse(readFileSync(file, 'utf8'))
    for (const { name, schema } of spec.versions) {
      const group = spec.group.split('.')[0] ?? ''
      const path = join(folder, `${spec.names.kind.toLowerCase()}-${group}-${name}.json`)
      writeFileSync(path, JSON.stringify(closed(schema.openAPIV3Schema, true)))
    }
  }
  return folder
}

/**
 * Returns a copy of the schema that allows no fields but the listed ones. `isRoot` means that the schema is
 * that of a whole resource, which may have the `metadata` that every API server knows.
 */
function closed(schema: unknown, isRoot = false): unknown {
  if (Array.isArray(schema)) return schema.map((item) => closed(item))
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([key, value]) => [
    key,
    isRoot && key === 'properties' ? rootProperties(value) : closed(value),
  ])
  const copy: Record<string, unknown> = Object.fromEntries(entries)
  const isOpen = copy['x-kubernetes-preserve-unknown-fields'] === true || 'additionalProperties' in copy
  if (typeof copy['properties'] === 'object' && copy['type'] === 'object' && !isOpen)
    copy['additionalProperties'] = false
  if (copy['x-kubernetes-int-or-string'] === true) delete copy['type']
  return copy
}

function rootProperties(properties: unknown): object {
  return { ...Object(closed(properties)), metadata: { type: 'object' } }
}

/** The kinds that the chart uses and that Kubernetes itself defines. */
const kinds = [
  'configmap-v1',
  'deployment-apps-v1',
  'horizontalpodautoscaler-autoscaling-v2',
  'ingress-networking-v1',
  'job-batch-v1',
  'networkpolicy-networking-v1',
  'poddisruptionbudget-policy-v1',
  'service-v1',
  'role-rbac-v1',
  'rolebinding-rbac-v1',
  'serviceaccount-v1',
  'statefulset-apps-v1',
]

/** The path of the definitions that several kinds share, as a schema refers to it. */
const shared = '/api/_definitions.json'

/**
 * Writes a schema for each of `kinds`, and returns the folder. A schema contains all definitions that it
 * needs, because kubeconform doesn't follow references to other files.
 */
export function writeKubernetesSchemas(source: string, version: string, scratch: string): string {
  const from = join(source, `v${version}-local-strict`)
  const { $defs: definitions }: { $defs: Record<string, object> } = JSON.parse(
    readFileSync(join(from, '_definitions.json'), 'utf8'),
  )
  const folder = join(scratch, version)
  mkdirSync(folder)
  for (const kind of kinds) {
    const { $id: _remote, ...schema }: { $id: string } = JSON.parse(
      readFileSync(join(from, `${kind}.json`), 'utf8'),
    )
    const whole = JSON.stringify({ ...schema, $defs: reached(schema, definitions) })
    writeFileSync(join(folder, `${kind}.json`), whole.replaceAll(`"${shared}#`, '"#'))
  }
  return folder
}

/** Returns those of `definitions` that `schema` refers to, directly or by way of other definitions. */
function reached(schema: object, definitions: Record<string, object>): Record<string, object> {
  const found: Record<string, object> = {}
  const open: object[] = [schema]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [, name = ''] of JSON.stringify(next).matchAll(/#\/\$defs\/([\w.-]+)"/g)) {
      const definition = definitions[name]
      if (definition === undefined || name in found) continue
      found[name] = definition
      open.push(definition)
    }
  }
  return found
}
