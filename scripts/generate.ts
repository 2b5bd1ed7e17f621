import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { adminOpenApi } from '../src/admin/openapi.ts'
import { catalogSchema } from '../src/catalog/catalog-schema.ts'
import { configMarkdown } from '../src/config/markdown.ts'
import { openApiDocument } from '../src/gateway/http/gateway-openapi.ts'
import { audienceChangeSchema } from '../src/message/audience-change.ts'
import { aclsMarkdown } from './acls-markdown.ts'
import { adminClientTypes } from './admin-client.ts'
import { adminApiMarkdown } from './admin-api-markdown.ts'
import { deletionAvro, eventAvro, membershipAvro, syncAvro, traitAvro } from '../src/message/avro-schemas.ts'
import { deletionSchema } from '../src/message/deletion.ts'
import { eventSchema } from '../src/message/message-schemas.ts'
import { architectureMarkdown } from './architecture-markdown.ts'
import { catalogMarkdown } from './catalog-markdown.ts'
import { chartFiles, leftCopies } from './chart.ts'
import { dashboardFiles, dashboardsMarkdown } from './dashboards.ts'
import { logLinesMarkdown } from './log-lines/log-lines-markdown.ts'
import { llmsText } from './llms-text.ts'
import { metricsMarkdown } from './metrics-markdown.ts'
import { peersPlot, peersResult, performanceMarkdown } from './peers.ts'
import { scalingPlot } from './plots/scaling.ts'
import { topicsMarkdown } from './topics-markdown.ts'

/**
 * `npm run generate`: writes all files that are generated from the code. With `--check` it writes nothing,
 * and fails if a generated file differs from what the code would generate, or if a copy has no original any
 * more.
 */
const root = resolve(import.meta.dirname, '..')

const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const peers = peersResult(read('docs/peers.json'))

const generated: Record<string, string> = {
  'schemas/event.schema.json': asJson(eventSchema),
  'schemas/audience-change.schema.json': asJson(audienceChangeSchema),
  'schemas/deletion.schema.json': asJson(deletionSchema),
  'schemas/event.avsc': asJson(eventAvro),
  'schemas/audience-membership.avsc': asJson(membershipAvro),
  'schemas/audience-trait.avsc': asJson(traitAvro),
  'schemas/audience-sync.avsc': asJson(syncAvro),
  'schemas/deletion.avsc': asJson(deletionAvro),
  'schemas/openapi.json': asJson(openApiDocument()),
  'schemas/admin-openapi.json': asJson(adminOpenApi()),
  'clients/admin/schema.d.ts': await adminClientTypes(),
  'schemas/catalog.schema.json': asJson(catalogSchema),
  'docs/configuration.md': configMarkdown(),
  'docs/catalog.md': catalogMarkdown(),
  ...chartFiles(root),
  ...under('deploy/grafana/dashboards', dashboardFiles()),
  ...under('deploy/helm/sluice/files/dashboards', dashboardFiles()),
  'llms.txt': llmsText(read('docs/README.md')),
  'docs/dashboards.md': dashboardsMarkdown(),
  'docs/acls.md': aclsMarkdown(),
  'docs/admin-api.md': adminApiMarkdown(read('docs/admin-api.md')),
  'docs/topics.md': topicsMarkdown(),
  'docs/architecture.md': architectureMarkdown(read('docs/architecture.md')),
  'docs/metrics.md': await metricsMarkdown(),
  'docs/log-lines.md': logLinesMarkdown(root),
  'docs/scaling.svg': scalingPlot(),
  'docs/performance.md': performanceMarkdown(read('docs/performance.md'), peers),
  'docs/peers.svg': peersPlot(peers),
}

const isCheck = process.argv.includes('--check')
const stale = Object.entries(generated).filter(([file, text]) => {
  const path = join(root, file)
  return !existsSync(path) || readFileSync(path, 'utf8') !== text
})
const left = leftCopies(root)
if (!isCheck) {
  for (const [file, text] of stale) writeFileSync(join(root, file), text)
  for (const file of left) rmSync(join(root, file))
}

for (const [file] of stale) console.log(isCheck ? `stale: ${file}` : `wrote ${file}`)
for (const file of left) console.log(isCheck ? `left behind: ${file}` : `removed ${file}`)
if (isCheck && stale.length + left.length > 0) {
  console.log('Run `npm run generate` and commit what it wrote.')
  process.exitCode = 1
}

function under(folder: string, files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))
}

function asJson(schema: object): string {
  return `${JSON.stringify(schema, null, 2)}\n`
}
