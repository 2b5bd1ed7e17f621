import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { configKeys } from '../src/config/schema.ts'
import { isMap, isScalar, parse, parseDocument, type Pair, type YAMLMap } from 'yaml'

/** Returns the texts of all files of the Helm chart that are generated from other files, by path. */
export function chartFiles(root: string): Record<string, string> {
  const chart = 'deploy/helm/sluice'
  const values = readFileSync(join(root, chart, 'values.yaml'), 'utf8')
  return {
    [`${chart}/values.schema.json`]: `${JSON.stringify(valuesSchema(values), null, 2)}\n`,
    [`${chart}/README.md`]: chartReadme(values),
    // The templates refuse settings that aren't in this list.
    [`${chart}/files/settings.txt`]: configKeys.map(({ variable }) => `${variable}\n`).join(''),
    ...copies(root, 'deploy/prometheus/*.rules.yaml', `${chart}/files/rules`),
    ...copies(root, 'deploy/grafana/dashboards/*.json', `${chart}/files/dashboards`),
    ...copies(root, 'deploy/runbooks/*.md', `${chart}/files/runbooks`),
  }
}

/** Returns the copies in the chart whose originals no longer exist. The chart would still install them. */
export function leftCopies(root: string): string[] {
  const wanted = chartFiles(root)
  return globSync('deploy/helm/sluice/files/*/*', { cwd: root }).filter((file) => !(file in wanted))
}

/** Returns copies of files for the chart, by path. Helm can't read files outside of the chart. */
function copies(root: string, pattern: string, folder: string): Record<string, string> {
  const files = globSync(pattern, { cwd: root }).toSorted()
  return Object.fromEntries(
    files.map((file) => [`${folder}/${basename(file)}`, readFileSync(join(root, file), 'utf8')]),
  )
}

type Schema = Readonly<Record<string, unknown>>

/** Schemas of values whose default doesn't show which values are allowed, by the path of the value. */
const refined: Readonly<Record<string, Schema>> = {
  'image.digest': { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
  'image.pullPolicy': { enum: ['Always', 'IfNotPresent', 'Never'] },
  'kafka.brokers': { type: 'array', items: { type: 'string', pattern: ':[0-9]+$' } },
  'kafka.topicPrefix': { type: 'string', pattern: '^[A-Za-z0-9._-]{0,100}$' },
  'kafka.sasl.mechanism': {
    enum: ['none', 'plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer', 'aws-iam'],
  },
  'topics.partitions': { type: 'integer', minimum: 1, maximum: 1000 },
  'topics.replication': { type: 'integer', minimum: 1, maximum: 15 },
  'topics.minInsync': { type: 'integer', minimum: 1, maximum: 15 },
  'catalog.inline': {
    type: 'object',
    properties: { sources: { type: 'array' }, destinations: { type: 'array' }, expect: { type: 'object' } },
    additionalProperties: false,
  },
  settings: {
    type: 'object',
    propertyNames: { pattern: '^SLUICE_[A-Z_]+$' },
    // For editors. A template refuses other names, because it can say which name was meant.
    properties: Object.fromEntries(
      configKeys.map(({ variable, key }) => [
        variable,
        { type: ['string', 'number', 'boolean'], description: key.description },
      ]),
    ),
    additionalProperties: { type: ['string', 'number', 'boolean'] },
  },
  'metrics.prometheusRule.disabled': { type: 'array', items: { type: 'string' } },
  shutdownTimeout: { type: 'string', pattern: '^[0-9]+(ms|s|m)$' },
  'gateway.shutdownDelay': { type: 'string', pattern: '^[0-9]+(ms|s|m)$' },
  'gateway.service.type': { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
  'admin.replicas': { type: 'integer', minimum: 1 },
  'admin.service.type': { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
  'deliveryLog.index.state.whenDeleted': { enum: ['Retain', 'Delete'] },
  listenHost: { type: 'string', pattern: '^[0-9A-Fa-f.:]+$' },
  'gateway.maxSurge': {
    anyOf: [
      { type: 'integer', minimum: 1 },
      { type: 'string', pattern: '^[1-9][0-9]*%$' },
    ],
  },
  'worker.instanceIdPrefix': { type: 'string', pattern: '^[A-Za-z0-9._-]{0,100}$' },
  'worker.leaveOnStop': { enum: ['', true, false] },
  'worker.processes': { anyOf: [{ const: '' }, { type: 'integer', minimum: 1, maximum: 256 }] },
  'worker.state.whenDeleted': { enum: ['Retain', 'Delete'] },
  'worker.state.whenScaled': { enum: ['Retain', 'Delete'] },
  'worker.autoscaling.kind': { enum: ['keda', 'hpa'] },
  'worker.autoscaling.targetUtilization': { type: 'integer', minimum: 10, maximum: 90 },
  'worker.autoscaling.drainSeconds': { type: 'integer', minimum: 30 },
  'worker.autoscaling.minReplicas': { type: 'integer', minimum: 1 },
  'worker.autoscaling.maxReplicas': { anyOf: [{ const: '' }, { type: 'integer', minimum: 1 }] },
}

/**
 * Matches the paths of labels and of objects that Kubernetes defines. The cluster checks them, not the chart.
 */
const open =
  /(^|\.)(podSecurityContext|securityContext|resources|updateStrategy|labels|annotations|commonLabels|podLabels|podAnnotations|nodeSelector|affinity|volume|triggerMetadata|authenticationRef)$/

/** Returns the schema of the chart's values. It refuses unknown names, such as names with a typing error. */
function valuesSchema(text: string): Schema {
  const root = schemaOf(parse(text), '')
  return { $schema: 'http://json-schema.org/draft-07/schema#', ...root }
}

function schemaOf(value: unknown, path: string): Schema {
  const special = refined[path]
  if (special !== undefined) return special
  if (path.endsWith('maxUnavailable')) return { type: ['integer', 'string'] }
  if (Array.isArray(value)) return { type: 'array' }
  switch (typeof value) {
    case 'number':
      return { type: 'integer', minimum: 0 }
    case 'boolean':
      return { type: 'boolean' }
    case 'object':
      return open.test(path) ? { type: 'object' } : closedSchema(Object(value), path)
    default:
      return { type: 'string' }
  }
}

function closedSchema(value: Record<string, unknown>, path: string): Schema {
  const properties = Object.entries(value).map(([key, inner]) => [key, schemaOf(inner, joined(path, key))])
  const isTop = path === ''
  // Helm itself adds `global` to the values of each chart.
  const ofHelm = isTop ? { global: { type: 'object' } } : {}
  return {
    type: 'object',
    properties: { ...Object.fromEntries(properties), ...ofHelm },
    additionalProperties: false,
  }
}

const introduction = `# Sluice on Kubernetes

Generated from the comments of \`values.yaml\` by \`npm run generate\`.

This page is for operators who run Sluice on Kubernetes. The chart runs gateways (a Deployment) and workers (a StatefulSet). It needs an existing Kafka cluster, Kubernetes 1.31 or later, and Helm 3.17 or later. It can also run the admin API (a Deployment) and the index of the delivery log (a StatefulSet). Before each install and upgrade,
a Job creates the topics and corrects their settings. If the Job fails, nothing else is installed or changed. Helm 3.17 then leaves what the Jobs need: a service account with its role, and network policies. The next install or upgrade replaces them.

\`\`\`
docker build -f deploy/Dockerfile -t REGISTRY/sluice:VERSION . && docker push REGISTRY/sluice:VERSION
kubectl create namespace sluice
kubectl create secret generic sluice-catalog --namespace sluice --from-file=catalog.yaml
helm install sluice deploy/helm/sluice --namespace sluice \\
  --set image.repository=REGISTRY/sluice,image.tag=VERSION --set 'kafka.brokers={kafka-0.kafka:9092}' \\
  --set catalog.volume.secret.secretName=sluice-catalog
\`\`\`

If a release has published the image and this chart (docs/releasing.md), you need not build the image. Leave out the first line and \`image.repository\`, and install the chart from \`oci://REGISTRY/OWNER/charts/sluice\`: it names the release's image.

## What to know

- **Your Kafka.** \`deploy/examples\` has a file of values each for Strimzi (with a password, or with a certificate), MSK with IAM, Confluent Cloud, Redpanda and Event Hubs. Each takes the Secrets as that product makes them.
- **Worker pods.** A pod runs a process for each whole CPU of its limit. The consumer group identifies a worker by the name of its pod. Each pod has a volume with the state of audiences, which is a cache. The number of partitions, divided by the processes of a pod, is the number of pods that
  can have work. Further pods get no partition, and are idle.
- **Grace period.** The grace period of a pod is the shutdown timeout plus five seconds. For gateways, it also includes their shutdown delay.
- **Security.** Containers don't run as root. They have no capabilities, and their root file system is read-only. Pods get no token of their service account, except that of the Job that makes the key for users. It may create Secrets in its namespace, and do nothing else.
- **Network.** Deliveries reach only public addresses. Sluice itself refuses private addresses (SECURITY.md). If the cluster enforces NetworkPolicies, the network refuses them too.
- **For operators.** The admin API (\`admin.enabled\`) and the index of the delivery log (\`deliveryLog.index.enabled\`) show what became of a message. The admin API can also send messages again. Both need a Secret, so they are off
  by default. These commands enable them:

  \`\`\`
  sluice admin token create --name ann --right operate >> LINES     # shows the token for ann, once
  kubectl create secret generic sluice-admin --namespace sluice --from-file=tokens=LINES
  kubectl create secret generic sluice-log --namespace sluice --from-literal=token=$(openssl rand -hex 32)
  helm upgrade … --set admin.enabled=true,admin.tokens.existingSecret=sluice-admin \\
    --set deliveryLog.index.enabled=true,deliveryLog.existingSecret=sluice-log
  \`\`\`

  The log finds users and values of messages by a keyed hash (docs/delivery-log.md). A Job makes the key in the Secret \`…-user-key\` at the first install. No upgrade changes it, and no uninstall removes it. If the release is copied to another cluster, copy this Secret too. To use a key of your own, set
  \`deliveryLog.userKeyKey\`. For a new key, delete the Secret, upgrade, and restart the pods.

- **Secrets.** Don't write secrets into values, because Helm stores the values with the release. Instead, set values to the names of existing Secrets. A catalog also contains secrets: signing secrets and write keys. There are two ways to keep them out of the values. You can keep the whole catalog in a
  Secret, as above. Or you can write \`\${CATALOG_X}\` in place of signing secrets, server keys, values of headers and URLs, and name the Secret with these variables in \`catalog.variablesSecret\`. Use \`catalog.file\` and \`catalog.inline\` only for a catalog without secrets, because
  the chart puts their text into a ConfigMap, and Helm stores it with the release.
- **Catalog.** A ConfigMap or a Secret holds at most 1 MiB. After an edit, the kubelet updates the file in the pods within about a minute. The edit takes effect a second later, and so does a change of \`catalog.variablesSecret\`. Pods compare an edit with the catalog that they have, and refuse a file that lacks many of its entries (docs/catalog.md). A worker pod also compares it when the pod starts, because its volume remembers
  the entries. Other pods remember them only until they are replaced. So if a program writes your catalog, let it write \`expect\` too: then every new pod refuses a file that was cut off. If your catalog is larger, put it on another kind of volume
  (\`catalog.volume\`).
- **Scaling.** \`worker.autoscaling\` changes the number of worker pods with the load. It looks at the CPU cores that are in use and those that the lag needs, the requests in flight, and the delay of retries
  (docs/scaling.md). With \`kind: hpa\`, the Prometheus adapter must serve three recorded series as external metrics:

  \`\`\`yaml
  externalRules:
    - seriesQuery: '{__name__=~"sluice_scaling_.+"}'
      resources: { overrides: { namespace: { resource: namespace } } }
      metricsQuery: max(<<.Series>>{<<.LabelMatchers>>})
  \`\`\`

- **Alerts.** \`metrics.prometheusRule.enabled\` creates rules that apply only to the pods of this release. So several releases can share a Prometheus and a namespace. The rules select series by the labels \`namespace\`
  and \`pod\`, which the Prometheus operator sets. If your series have other labels, set \`metrics.prometheusRule.seriesMatchers\`. \`kubectl exec POD -- sluice runbook ALERT\` prints the runbook of an alert.
  For links in alerts (\`runbook_url\`), set \`metrics.prometheusRule.runbookBaseUrl\` to the address where your people read the pages of \`files/runbooks\`.
- **Number of pods after an upgrade or a rollback.** If an autoscaler is on, an upgrade keeps the present number of pods. A rollback keeps it only if autoscaling has been on since the install. In this case, the StatefulSet or Deployment has the annotation
  \`sluice/counted-by\`. Without this annotation, a rollback sets the number of the earlier revision. So instead of the rollback, upgrade to the earlier version of the chart and of the image.
- **Refused upgrades.** Kubernetes doesn't allow changes to a StatefulSet's volumes, or to the labels by which a StatefulSet or a Deployment selects its pods. If an upgrade has such a change, the chart refuses it before anything is
  changed, and its message says what to do. Before a rollback over such a change, do what this message says.
- **Tools that only render the chart.** The chart has to read from the cluster to keep the present number of pods, and to refuse upgrades. \`helm template\` and Argo CD only render the chart, so both don't work with them. If you use autoscaling with such a
  tool, configure the tool to leave \`spec.replicas\` unchanged.
- **Uninstall.** An uninstall removes everything that the chart has created, except volumes whose \`whenDeleted\` is \`Retain\`. It doesn't remove Secrets, ConfigMaps and topics that the values only name.

## Values

`

function chartReadme(text: string): string {
  const document = parseDocument(text)
  const rows = isMap(document.contents) ? rowsOf(document.contents, '', '') : []
  const table = [['Value', 'Default', 'Meaning'], ['---', '---', '---'], ...rows]
  return introduction + table.map((row) => `| ${row.join(' | ')} |\n`).join('')
}

/**
 * Returns a row for each value. The comment of an object is about all values in the object. It is shown in
 * the row of the first of them.
 */
function rowsOf(map: YAMLMap, path: string, inherited: string): string[][] {
  return map.items.flatMap((pair, index) => {
    const key = joined(path, String(isScalar(pair.key) ? pair.key.value : pair.key))
    const said = [index === 0 ? inherited : '', commentOf(pair, map, index)]
      .filter((part) => part !== '')
      .join(' ')
    if (isMap(pair.value) && pair.value.items.length > 0 && !open.test(key) && !(key in refined))
      return rowsOf(pair.value, key, said)
    const shown = JSON.stringify(
      isMap(pair.value) || !isScalar(pair.value) ? Object(pair.value).toJSON() : pair.value.value,
    )
    return [[`\`${key}\``, shown === '""' ? '' : `\`${shown}\``, said]]
  })
}

/**
 * Returns the comment of a value: the text after `# --`. The YAML parser attaches the comment of a map's
 * first key to the map itself.
 */
function commentOf(pair: Pair, map: YAMLMap, index: number): string {
  const own = isScalar(pair.key) ? pair.key.commentBefore : undefined
  const comment = own ?? (index === 0 ? map.commentBefore : undefined) ?? ''
  return /^ -- (.*)$/m.exec(comment)?.[1] ?? ''
}

function joined(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
