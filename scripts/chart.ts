import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isMap, isScalar, parse, parseDocument, type Pair, type YAMLMap } from 'yaml'

/** Returns the texts of all files of the Helm chart that are generated from other files, by path. */
export function chartFiles(root: string): Record<string, string> {
  const chart = 'deploy/helm/sluice'
  const values = readFileSync(join(root, chart, 'values.yaml'), 'utf8')
  return {
    [`${chart}/values.schema.json`]: `${JSON.stringify(valuesSchema(values), null, 2)}\n`,
    [`${chart}/README.md`]: chartReadme(values),
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
    properties: { sources: { type: 'array' }, destinations: { type: 'array' } },
    additionalProperties: false,
  },
  settings: {
    type: 'object',
    propertyNames: { pattern: '^SLUICE_[A-Z_]+$' },
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

A gateway (Deployment) and workers (StatefulSet) for a Kafka that you have; if you like, the admin API (Deployment) and the index of the delivery log (StatefulSet). Before each install and upgrade a Job creates the topics and
corrects their settings.

\`\`\`
docker build -f deploy/Dockerfile -t REGISTRY/sluice:VERSION . && docker push REGISTRY/sluice:VERSION
kubectl create namespace sluice
kubectl create secret generic sluice-catalog --namespace sluice --from-file=catalog.yaml
helm install sluice deploy/helm/sluice --namespace sluice \\
  --set image.repository=REGISTRY/sluice,image.tag=VERSION --set 'kafka.brokers={kafka-0.kafka:9092}' \\
  --set catalog.volume.secret.secretName=sluice-catalog
\`\`\`

Where a release has published the image and this chart (docs/releasing.md), leave out the first line, set \`image.repository\` to what it names, and install \`oci://…/sluice\`.

What it takes care of:

- **A worker pod** has a process for each whole CPU of its limit, is known to the group by its name, and keeps what audiences hold on a volume of its own,
  which is a cache. More pods than partitions divided by processes have nothing to do.
- **The end of a pod**: its grace period is the shutdown timeout (and the gateway's delay) and five seconds more.
- **Rights**: no root, no capability, a tree that nothing can write to, no token of the service account.
- **Network**: deliveries reach public addresses alone. What is private is refused by Sluice itself (SECURITY.md) and, where the cluster enforces policies, by the network.
- **Operators**: \`admin.enabled\` and \`deliveryLog.index.enabled\` answer what became of a message, and send again. Both want a Secret, so they are off by default:

  \`\`\`
  sluice admin token create --name ann --right operate     # the token for ann, and a line for the file
  kubectl create secret generic sluice-admin --from-file=tokens=LINES
  kubectl create secret generic sluice-log --from-literal=token=$(openssl rand -hex 32) --from-literal=user-key=$(openssl rand -hex 32)
  helm upgrade … --set admin.enabled=true,admin.tokens.existingSecret=sluice-admin \\
    --set deliveryLog.index.enabled=true,deliveryLog.existingSecret=sluice-log,deliveryLog.userKeyKey=user-key
  \`\`\`

- **Secrets** are never values: the chart names Secrets that exist. A catalog has secrets too (signing secrets, write keys). Keep it in a Secret, as above, or write \`\${CATALOG_X}\` in its place of each and name the
  Secret with those variables in \`catalog.variablesSecret\`. \`catalog.file\` and \`catalog.inline\` put their text into a ConfigMap, and Helm keeps it with the release: give them a catalog without secrets alone.
- **The catalog**: a ConfigMap or a Secret holds at most 1 MiB, and the kubelet brings an edit within about a minute; it is in force a second later. A larger one comes from another volume.
- **Scaling**: \`worker.autoscaling\` asks for pods by the cores that they use and that the lag of \`events\` and \`replays\` takes beside, by the requests in flight, and by how late retries
  are (docs/scaling.md). With \`kind: hpa\` the Prometheus adapter has to serve three recorded series as external metrics:

  \`\`\`yaml
  externalRules:
    - seriesQuery: '{__name__=~"sluice_scaling_.+"}'
      resources: { overrides: { namespace: { resource: namespace } } }
      metricsQuery: max(<<.Series>>{<<.LabelMatchers>>})
  \`\`\`

- **Alerts**: \`metrics.prometheusRule.enabled\` gives the release rules of its own, which look at its pods alone. Several releases may share a Prometheus and a namespace. The rules pick series by the labels
  \`namespace\` and \`pod\` of Prometheus' operator; \`seriesMatchers\` names others. Runbooks are in \`files/runbooks\`; set \`runbookBaseUrl\` to where your people read them.
- **Upgrades**: where an autoscaler counts the pods, an upgrade keeps their number. So does a rollback, if autoscaling has been on since the install (the annotation \`sluice/counted-by\`
  says so). Otherwise a rollback brings the number of that revision: upgrade to the earlier version of the chart and the image in its place. What Kubernetes lets nobody change (volumes of workers, by what pods are known) is refused before anything
  is changed, and the message says what to do; before a rollback over such a change do the same. Helm asks the cluster for both: what only renders (\`helm template\`, Argo CD) has to leave
  \`spec.replicas\` alone by itself.
- **What an uninstall leaves**: nothing, but volumes where \`whenDeleted\` is \`Retain\`, and what the chart has only named: Secrets, ConfigMaps, topics.

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
