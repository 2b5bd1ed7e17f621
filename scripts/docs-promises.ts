import type { DocFacts } from './docs-faults.ts'

/** A route of an HTTP API, such as `GET` and `/v1/replays/{replay}`. */
export type Route = { readonly method: string; readonly path: string }

const call = /\b(GET|POST|PUT|PATCH|DELETE) (\/v1\/[\w{}/.:-]+)/g
const bare = /(?<![\w.:/])\/v1\/[a-z][\w{}/-]*/g

/** Returns a fault for each route that a row of code names and that no API has. */
export function routeFaults(row: string, { routes }: DocFacts): string[] {
  const calls = [...row.matchAll(call)].flatMap(([whole, method = '', path = '']) =>
    routes.some((route) => route.method === method && leadsTo(path, route.path))
      ? []
      : [`names ${whole}, which no API has`],
  )
  const paths = [...row.replaceAll(call, '').matchAll(bare)].flatMap(([path]) =>
    routes.some((route) => leadsTo(path, route.path) || isFolderOf(path, route.path))
      ? []
      : [`names the path ${path}, which no API has`],
  )
  return [...calls, ...paths]
}

/** Returns true if a path is that of a route. Any text may stand in the place of a parameter. */
function leadsTo(path: string, route: string): boolean {
  const [words, expected] = [path.replace(/[/.]$/, '').split('/'), route.split('/')]
  return (
    words.length === expected.length &&
    expected.every((part, index) => part.startsWith('{') || part === words[index])
  )
}

function isFolderOf(path: string, route: string): boolean {
  return path.endsWith('/') && route.startsWith(path)
}

const assignment = /(?<![\w.])(\w+\.\w+|SLUICE_[A-Z_]+)=('[^']*'|"[^"]*"|[^\s`'";|&)]+)/g
const settingFlag = /(--[a-z]+-[a-z-]+)(?:[ =])([^\s`'"\\-][^\s`'"\\]*)/g

/**
 * Returns a fault for each value of a row of code that its setting refuses. A value with a variable, an ellipsis
 * or a word in capitals stands for another value.
 */
export function valueFaults(row: string, { refusalOf }: DocFacts): string[] {
  return [...row.matchAll(assignment), ...row.matchAll(settingFlag)].flatMap(
    ([whole, name = '', given = '']) => {
      const value = given
        .replace(/^(['"])(.*)\1$/, '$2')
        .replace(/,\w+\.\w+=.*/, '')
        .replace(/[.,:]$/, '')
      if (/[$…{<]|^[A-Z]|\b[A-Z]{2,}\b/.test(value) || value === '') return []
      const expected = refusalOf(name, value)
      return expected === undefined ? [] : [`names ${whole}, but ${name} takes ${expected}`]
    },
  )
}

/**
 * Returns the calls of `sluice` in a text that isn't Markdown: a program, a compose file, a template of the
 * chart. A call is what follows `sluice` in backticks or quotes, or the words of a known command.
 */
export function spokenCalls(row: string, { program }: DocFacts): string[] {
  // `sluice up` prints its own name as it was called.
  const said = row.replaceAll('${sluice} ', 'sluice ')
  const names = program.commands.map(({ name }) => name).join('|')
  // `the log of sluice admin says why` is no call.
  const spoken = new RegExp(
    String.raw`(?<![\w/.'-])sluice (?!admin (?!token))((?:${names})\b[^\x60"';|&<>)(:,\\]*)`,
    'g',
  )
  const quoted = /(?<=\x60)sluice ([a-z][^\x60\\;|&<>)(:,]*)(?=\\?\x60)/g
  return [
    ...new Set([...said.matchAll(spoken), ...said.matchAll(quoted)].map(([, rest = '']) => rest.trim())),
  ]
}
