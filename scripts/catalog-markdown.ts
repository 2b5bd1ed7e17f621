import { catalogSchema } from '../src/catalog/catalog-schema.ts'
import { alignTable } from '../src/config/markdown.ts'

const introduction = `# The catalog

Generated from \`src/catalog/catalog-schema.ts\` by \`npm run generate\`.

The catalog lists all sources and destinations. It is a file in YAML or JSON, which \`catalog.file\` names. A file of
JSON begins with \`{\`, and may have up to 64 MiB. A file of YAML may have up to 16 MiB. Sluice reads JSON ten times as
fast as YAML.

Sluice checks the file a few times a second. An edit takes effect within a second, plus the time to read the file (a
second for each MiB of YAML), without a restart. If an edit has a fault, Sluice refuses the whole edit, names the
faults in the log, and keeps the earlier version. But a process doesn't start with a faulty catalog. So check a file
before you use it:

\`\`\`
sluice catalog check catalog.yaml
sluice catalog check catalog.yaml --allow-unset                            # where the variables are not set, as in CI
sluice catalog check catalog.yaml --delivery-allow-addresses 127.0.0.0/8   # for sluice up, which allows these addresses
\`\`\`

An editor that knows JSON Schema can check and complete the file by
[\`schemas/catalog.schema.json\`](../schemas/catalog.schema.json). This catalog has the fields that most installations
need:

\`\`\`yaml
# yaml-language-server: $schema=./schemas/catalog.schema.json
sources:
  - id: shop
    writeKeys: [shop-write-key] # for clients of the gateway
  - id: personas
    kind: audiences
    serverKeys: ['\${CATALOG_PERSONAS_KEY}'] # for servers that send audience changes
destinations:
  - id: crm
    sources: [shop, personas]
    filter: { types: [identify, track], events: [Order Completed] }
    sharedSecret: '\${CATALOG_CRM_SECRET}'
    rateLimit: { perSecond: 50 }
    hooks:
      - url: https://crm.example.com/hook
        headers: { X-Team: crm }
\`\`\`

Secrets, server keys and the values of headers may contain variables of the environment, such as
\`\${CATALOG_CRM_SECRET}\`. The name of such a variable must begin with \`CATALOG_\`. A process reads the variables
only when it starts, so restart it before the catalog names a new one. \`$\${\` stands for \`\${\`.
`

type Schema = {
  type?: string
  enum?: readonly string[]
  description?: string
  default?: string | number | boolean
  minimum?: number
  exclusiveMinimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  maxLength?: number
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[] | undefined
}

/** Returns the text of `docs/catalog.md`. */
export function catalogMarkdown(): string {
  const { sources, destinations }: Readonly<Record<string, Schema>> = catalogSchema.properties
  return [
    introduction,
    section('A source', sources?.items),
    section('A destination', destinations?.items),
    section('A hook', destinations?.items?.properties?.['hooks']?.items),
  ].join('\n')
}

const heading = ['Field', 'Value', 'Default', 'Meaning']

function section(title: string, schema: Schema = {}): string {
  return `## ${title}\n\n${alignTable([heading, ...rowsOf(schema, '')])}\n`
}

/** Returns a row for each field. The fields of an object in a field have the name of both. */
function rowsOf({ properties = {}, required = [] }: Schema, before: string): string[][] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const field = `${before}${name}`
    const preset = required.includes(name) ? 'required' : presetOf(schema)
    const row = [`\`${field}\``, valueOf(schema), preset, (schema.description ?? '').replaceAll('|', '\\|')]
    return [row, ...(schema.type === 'object' ? rowsOf(schema, `${field}.`) : [])]
  })
}

function presetOf({ default: preset }: Schema): string {
  return preset === undefined ? '' : `\`${String(preset)}\``
}

function valueOf(schema: Schema): string {
  const { type, enum: choices, items, properties, minItems = 0, maxItems, maxLength } = schema
  if (choices !== undefined) return choices.map((choice) => `\`${choice}\``).join(', ')
  if (type === 'array') {
    const many =
      maxItems === undefined ? '' : minItems > 0 ? `${minItems} to ${maxItems} ` : `up to ${maxItems} `
    if (items?.type === 'object') return `list of ${many}objects`
    const each = items?.enum === undefined ? 'texts' : valueOf(items)
    return `list of ${many}${each}${charactersOf(items?.maxLength, 'each at most')}`
  }
  if (type === 'object') return properties === undefined ? 'texts by name' : 'object'
  if (type === 'boolean') return '`true`, `false`'
  if (type === 'string') return `text${charactersOf(maxLength)}`
  return `${type === 'integer' ? 'whole number' : 'number'}, ${rangeOf(schema)}`
}

function charactersOf(most: number | undefined, how = 'at most'): string {
  return most === undefined ? '' : `, ${how} ${most.toLocaleString('en-US')} characters`
}

function rangeOf({ minimum, exclusiveMinimum, maximum = 0 }: Schema): string {
  const most = maximum.toLocaleString('en-US')
  return minimum === undefined ? `over ${exclusiveMinimum}, at most ${most}` : `${minimum} to ${most}`
}
