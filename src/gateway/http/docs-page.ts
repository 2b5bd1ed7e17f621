import { createHash } from 'node:crypto'

/**
 * The script of the documentation page, which renders `openapi.json` without a library. It inserts everything
 * from `openapi.json` as text, never as HTML.
 */
const script = `
const make = (tag, attributes = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), attributes)
  element.append(...children)
  return element
}
const typeOf = (schema) =>
  schema.const !== undefined ? JSON.stringify(schema.const)
  : schema.enum ? schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  : schema.anyOf ? schema.anyOf.map(typeOf).join(' | ')
  : schema.type === 'array' ? 'list of ' + typeOf(schema.items)
  : schema.type ?? 'any'
const rowsOf = (schema, prefix = '') => {
  if (schema.anyOf) return schema.anyOf.flatMap((choice) => rowsOf(choice, prefix))
  if (schema.type === 'array') return rowsOf(schema.items, prefix + '[]')
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    make('tr', {},
      make('td', {}, make('code', { textContent: (prefix ? prefix + '.' : '') + name })),
      make('td', { textContent: typeOf(field) }),
      make('td', { textContent: schema.required?.includes(name) ? 'needed' : '' }),
      make('td', { textContent: field.description ?? '' })),
    ...(field.type === 'array' || field.properties ? rowsOf(field, (prefix ? prefix + '.' : '') + name) : []),
  ])
}
const keyOf = (security) =>
  security.length === 0 ? 'no key' : 'writeKey' in security[0] ? 'write key' : 'server key'
const sectionOf = (path, { operationId, summary, description, security, requestBody, responses }) =>
  make('details', { id: operationId },
    make('summary', {}, make('code', { textContent: 'POST ' + path }), ' ' + summary),
    make('p', { textContent: description + ' (' + keyOf(security) + ')' }),
    make('table', {}, ...rowsOf(requestBody.content['application/json'].schema)),
    make('table', {}, ...Object.entries(responses).map(([status, response]) => make('tr', {},
      make('td', {}, make('code', { textContent: status })),
      make('td', { textContent: response.description })))))
fetch('openapi.json').then((response) => response.json()).then((api) => {
  document.querySelector('main').append(
    make('p', { textContent: api.info.description }),
    ...Object.entries(api.paths).map(([path, { post }]) => sectionOf(path, post)))
})
`

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
summary { cursor: pointer; padding: .4rem 0 }
details { border-top: 1px solid #8884 }
table { border-collapse: collapse; margin: .5rem 0 1rem }
td { padding: .15rem .8rem .15rem 0; vertical-align: top }
`

/** A page that documents the API. It loads only `openapi.json`, by a relative link. */
export const docsPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sluice gateway</title>
<style>${style}</style>
<main><h1>Sluice gateway</h1><p><a href="openapi.json">openapi.json</a></p></main>
<script>${script}</script>
</html>
`

/**
 * The content security policy of the documentation page. It allows the page's own script, the page's own
 * style, and requests to the page's own server.
 */
export const docsPolicy = [
  "default-src 'none'",
  `script-src '${digestOf(script)}'`,
  `style-src '${digestOf(style)}'`,
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

function digestOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
