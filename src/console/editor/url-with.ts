/** Returns a URL to whose path a mapping has added another one with its query. */
export function urlWith(url: string, added: string): string {
  if (added === '') return url
  const [base, query] = halves(url)
  const [path, more] = halves(added)
  const queries = [query, more].filter((one) => one !== '')
  return base.replace(/\/$/, '') + path + (queries.length === 0 ? '' : `?${queries.join('&')}`)
}

function halves(text: string): readonly [before: string, after: string] {
  const at = text.indexOf('?')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
