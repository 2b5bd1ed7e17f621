import { configKeys, type ConfigKey } from './schema.ts'

const introduction = `# Configuration

Generated from \`src/config/schema.ts\` by \`npm run generate\`.

Each key is a variable of the environment and a flag: \`kafka.groupId\` is \`SLUICE_KAFKA_GROUP_ID\` and
\`--kafka-group-id\`. A flag takes precedence over a variable, and a variable over the default. An empty variable counts as
unset. Sluice reports all faults at once. A \`SLUICE_\` variable that isn't listed here is a fault too. Secrets have no
flag, because every process of the machine can read arguments. \`sluice config\` shows which values are in force, and
where each value is from.

A duration is a whole number with \`ms\`, \`s\`, \`m\` or \`h\`. A size is a whole number with \`B\`, \`KiB\`, \`MiB\` or \`GiB\`.

Secrets and header values in the catalog can name variables too: \`\${CATALOG_X}\`. Only names that begin with \`CATALOG_\`
are allowed.
`

/** Returns the text of `docs/configuration.md`, as the formatter would format it. */
export function configMarkdown(): string {
  const sections = Map.groupBy(configKeys, ({ section }) => section)
  const tables = [...sections].map(([section, keys]) => `\n## ${section}\n\n${table(keys)}\n`)
  return introduction + tables.join('')
}

const heading = ['Key', 'Variable', 'Default', 'Value', 'Meaning']

function table(keys: readonly ConfigKey[]): string {
  return alignTable([heading, ...keys.map(cells)])
}

/** Returns a table in Markdown, as the formatter would format it. The first row is the heading. */
export function alignTable(rows: readonly (readonly string[])[]): string {
  const [titles = []] = rows
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const rule = widths.map((width) => '-'.repeat(width))
  const [first, ...others] = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)))
  return [first, rule, ...others].map((row) => `| ${row?.join(' | ')} |`).join('\n')
}

function cells({ name, variable, key }: ConfigKey): string[] {
  const variables = [variable, ...(key.alias === undefined ? [] : [key.alias])].map(code).join(', ')
  const preset = key.format(key.defaultValue)
  const expected = key.isSecret ? `${key.expected} (secret)` : key.expected
  return [code(name), variables, preset === '' ? 'none' : code(preset), expected, key.description]
}

function code(text: string): string {
  return `\`${text}\``
}
