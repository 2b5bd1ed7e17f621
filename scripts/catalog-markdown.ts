import { catalogSchema } from '../src/catalog/catalog-schema.ts'
import { alignTable } from '../src/config/markdown.ts'

const introduction = `# The catalog

Generated from \`src/catalog/catalog-schema.ts\` by \`npm run generate\`. This page is for those who write a catalog of sources and destinations.

The catalog lists all sources and destinations. It is a file in YAML or JSON, which \`catalog.file\` names. A file of
JSON begins with \`{\`, and may have up to 64 MiB. A file of YAML may have up to 16 MiB. Sluice reads JSON ten times as
fast as YAML.

Sluice checks the file a few times a second. An edit takes effect within a second, plus the time to read the file (a
second for each MiB of YAML), without a restart. If an edit has a fault, Sluice refuses the whole edit, names the
faults in the log and in \`sluice status\`, and keeps the earlier version. But a process doesn't start with a faulty catalog. So check a file
before you use it:

\`\`\`
sluice catalog check catalog.yaml
sluice catalog check catalog.yaml --allow-unset                            # where the variables are not set, as in CI
sluice catalog check catalog.yaml --delivery-allow-addresses 127.0.0.0/8   # for sluice up, which allows these addresses
sluice catalog check catalog.yaml --against old.yaml                       # what differs, and whether too much is missing
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

## Files that were cut off

A catalog that was cut off may still be valid YAML. So Sluice compares each file with the catalog in force. If the file
lacks more than one and more than a tenth of the destinations (or of the sources), Sluice refuses it, and names them in
the log. It also refuses a file without any entry. The metric \`sluice_catalog_refused\` is then 1. If the entries are to be
removed, the file itself must say how many are left:

\`\`\`text
expect: { destinations: 5 }
\`\`\`

Sluice refuses each file that has another number of them. So if a program writes the file, let it always write
\`expect\`, at the top and with the numbers that it meant to write.

When a process starts, it compares the file with the catalog that was last in force with its state folder
(\`state.folder\`). That folder has the ids and states of the entries, in \`catalog.json\`, and no secrets. If you want to use
another catalog there, remove that file. There is nothing to compare with at the first start, and in a new pod whose
state folder is empty, such as each new pod of a gateway. There, only \`expect\` protects you. A gateway whose catalog has no
source isn't ready, so that it replaces no other gateway.

The log has a line for each change: \`-crm\` was removed, \`+crm\` was added, \`crm: on → paused\` has another state, and
\`crm: hooks, rateLimit\` has other values in these fields. If messages wait for a destination that was removed, they
become dead letters (\`destination_removed\`). The log of each worker then says how many waited in its memory, and once a
minute how many have become dead letters since it started. To deliver them, put the destination back, and
[replay](replay.md) its dead letters.

If you edit the URL, the headers, the login or the certificates of a hook, or the secrets of its destination, the hook counts as a new one for
messages that wait, even if it keeps its \`id\`. They try it again at their next retry, although it had failed for good
or asked for a wait. [Decision 90](decisions/090-state-of-a-hook-by-its-content.md) says how Sluice notices the edit.

## A folder of files

\`catalog.file\` may be a folder. Sluice then reads its files \`.yaml\`, \`.yml\` and \`.json\`, up to 20,000 of 1 MiB each,
and 64 MiB in all.
A file has one destination, or \`sources:\` and \`destinations:\` as above. So each destination can have a file of its own:

\`\`\`yaml
# destinations/crm.yaml
id: crm
sources: [shop]
hooks: [{ url: https://crm.example.com/hook }]
\`\`\`

A file with a fault refuses only itself. What it said before stays in force, all other files take effect, the log and \`sluice status\`
name the file and the line, and \`sluice_catalog_refused\` is 1. Of two files with the same destination, the one that was there
before stays. If an edit breaks files that didn't change, for example because it removes their source, Sluice refuses it
as a whole. A variable that is gone keeps its value.

A process that starts doesn't know what a faulty file said before. It pauses the file's destinations, so that their
messages wait until the file is mended, and are not lost. It keeps their sources and their filter. A process doesn't
start if it can't know which messages would be lost: if a file is not valid YAML, or if a source, an id, a list of sources or
a filter has a fault. \`sluice catalog check FOLDER\` names all faults, and ends with the code 1 if there is any.

\`expect\` may be in one of the files, and has the numbers of the whole folder. [\`deploy/examples/gitops\`](../deploy/examples/gitops)
shows destinations in Git, with Argo CD and Flux. [Decision 132](decisions/132-a-file-refuses-itself-alone.md) has the reasons.

## Variables

Secrets, server keys, URLs, the values of headers, the secrets of a \`login\` and \`tls\` may contain variables, such as \`\${CATALOG_CRM_SECRET}\`. The name of
such a variable must begin with \`CATALOG_\`. \`$\${\` stands for \`\${\`. In all other places, a variable is a fault.

A variable can be a file in the folder \`catalog.variablesFolder\`. The file has the name of the variable, and the line
break at its end doesn't count. Kubernetes mounts a Secret as such a folder. A change of a file takes effect as an edit
of the catalog does, without a restart. If a file is missing or empty, or its value has a
fault, such as half a certificate, the variable keeps its former value. All other edits take effect. Sluice names the
destination and the fault in the log, and uses the new value once it is mended ([decision
165](decisions/165-a-faulty-variable-stays-as-it-was.md)). A certificate may come before its key.

A variable can also come from the environment. A process reads the environment only when it starts, so restart it
before the catalog names a new variable of the environment.

Sluice never shows the path and the query of a URL. But it shows the host in logs, in traces and in the admin API. So a
variable with a whole URL may have a secret in its path or query, and not in the name of its host.
`

type Schema = {
  /** What TypeBox calls it. Each schema has it, also one for any value. */
  '~kind'?: string
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
  patternProperties?: Readonly<Record<string, object>>
  required?: readonly string[] | undefined
}

/** Returns the text of `docs/catalog.md`. */
export function catalogMarkdown(): string {
  const { sources, destinations, expect }: Readonly<Record<string, Schema>> = catalogSchema.properties
  return [
    introduction,
    section('Numbers of entries (`expect`)', expect),
    section('A source', sources?.items),
    section('A destination', destinations?.items),
    section('A mapping', destinations?.items?.properties?.['mappings']?.items),
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
  if (type === undefined && choices === undefined) return 'any value'
  if (choices !== undefined) return choices.map((choice) => `\`${choice}\``).join(', ')
  if (type === 'array') {
    const many =
      maxItems === undefined ? '' : minItems > 0 ? `${minItems} to ${maxItems} ` : `up to ${maxItems} `
    if (items?.type === 'object') return `list of ${many}objects`
    const each = items?.enum === undefined ? 'texts' : valueOf(items)
    return `list of ${many}${each}${charactersOf(items?.maxLength, 'each at most')}`
  }
  if (type === 'object') return properties === undefined ? namedValues(schema) : 'object'
  if (type === 'boolean') return '`true`, `false`'
  if (type === 'string') return `text${charactersOf(maxLength)}`
  return `${type === 'integer' ? 'whole number' : 'number'}, ${rangeOf(schema)}`
}

function namedValues({ patternProperties = {} }: Schema): string {
  const isText = Object.values(patternProperties).every((value) => 'type' in value && value.type === 'string')
  return isText ? 'texts by name' : 'values by name'
}

function charactersOf(most: number | undefined, how = 'at most'): string {
  return most === undefined ? '' : `, ${how} ${most.toLocaleString('en-US')} characters`
}

function rangeOf({ minimum, exclusiveMinimum, maximum = 0 }: Schema): string {
  const most = maximum.toLocaleString('en-US')
  return minimum === undefined ? `over ${exclusiveMinimum}, at most ${most}` : `${minimum} to ${most}`
}
