import { configKeys, type ConfigKey } from './schema.ts'

const introduction = `# Configuration

Generated from \`src/config/schema.ts\` by \`npm run generate\`. This page is for operators.

You can set each key by an environment variable or a flag. For example, you can set \`kafka.groupId\` by
\`SLUICE_KAFKA_GROUP_ID\` or \`--kafka-group-id\`. A flag takes precedence over a variable, and a variable over the
default. An empty variable counts as unset. Secrets have no flag, because every process of the machine can read
arguments. \`sluice config\` shows the present value of each key, and where the value comes from; \`sluice config
kafka.brokers retry --json\` shows one key and one section, as JSON. If a flag, a variable or a command is misspelled,
Sluice says what is spelled most like it.

If there are faults, Sluice reports all of them together. It is also a fault to set a \`SLUICE_\` variable that isn't
listed here.

A duration is a whole number with \`ms\`, \`s\`, \`m\` or \`h\`. A size is a whole number with \`B\`, \`KiB\`, \`MiB\` or \`GiB\`.

In the catalog, a secret, a URL or the value of a header can also come from a variable: write \`\${CATALOG_X}\`. The name
of the variable must begin with \`CATALOG_\`. It is a variable of the environment, or a file in
\`catalog.variablesFolder\`.
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
