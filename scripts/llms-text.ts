import { linksOf } from './markdown-page.ts'

/**
 * Returns the text of `llms.txt`, by which a language model finds the right page: the pages of the index by reader,
 * with what each answers. `index` is the text of `docs/README.md`. The form is that of llmstxt.org.
 */
export function llmsText(index: string): string {
  const parts = index.split(/^## /m).slice(1)
  return [
    '# Sluice',
    '',
    '> Sluice delivers customer-data events from Kafka to webhooks: signed, isolated by destination, retried for four hours. It runs on Node 24 and needs a Kafka.',
    '',
    'Commands are `sluice …`, or `npx sluice …` in a checkout and in folders with the package (anywhere else, npx would run a stranger of this name, and a published release is `npx @OWNER/sluice`). `sluice COMMAND --help` has the flags, `sluice config` the settings, `sluice runbook ALERT` what to do when an alert fires. The HTTP APIs are described in schemas/openapi.json (gateway) and schemas/admin-openapi.json (admin API), and the catalog in schemas/catalog.schema.json.',
    '',
    '- [README](README.md): what Sluice is, a first webhook in three steps',
    ...parts.flatMap((part) => {
      const [heading = '', ...rows] = part.split('\n')
      const entries = rows.flatMap(entryOf)
      return entries.length === 0 ? [] : ['', `## ${heading}`, '', ...entries]
    }),
    '',
  ].join('\n')
}

/** Returns the entry of a row of the index, or nothing if the row is not about a page. */
function entryOf(row: string): string[] {
  const [, page = '', answers = ''] = row.split('|').map((cell) => cell.trim())
  const [link] = linksOf(page)
  if (link === undefined) return []
  const [, name = ''] = /\[([^\]]+)\]/.exec(page) ?? []
  const target = link.target.startsWith('../') ? link.target.slice(3) : `docs/${link.target}`
  return [`- [${name}](${target}): ${answers}`]
}
