import type { Shaped } from '../shape/shaper.ts'
import type { OwnRequest, Target } from './send/sender.ts'

/** Returns what is different in a request that a mapping has made, compared with the others to this URL. */
export function ownRequest({ path, headers }: Target, shaped: Shaped): OwnRequest {
  const own = ['Content-Type', shaped.contentType, ...shaped.headers]
  const names = new Set(own.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()))
  const kept = headers.filter((_, at) => !names.has(headers[at - (at % 2)]?.toLowerCase() ?? ''))
  return { method: shaped.method, path: joinedPath(path, shaped.path), headers: [...kept, ...own] }
}

/** Adds a path with its query to the path of a URL with its query. */
export function joinedPath(path: string, added: string): string {
  if (added === '') return path
  const [base = '', query = ''] = halves(path)
  const [more = '', moreQuery = ''] = halves(added)
  const queries = [query, moreQuery].filter((one) => one !== '')
  return base.replace(/\/$/, '') + more + (queries.length === 0 ? '' : `?${queries.join('&')}`)
}

function halves(path: string): readonly string[] {
  const at = path.indexOf('?')
  return at === -1 ? [path] : [path.slice(0, at), path.slice(at + 1)]
}
