import { isString, listOf, recordOf } from '../catalog/plain-data.ts'
import { type Definition, literal, type Secrets } from './entries.ts'
import { LeftOut, type Note } from './note.ts'
import { type Item, textOf } from './workspace.ts'

/** A destination of Segment's type Webhooks has at most as many URLs, and so does one of Sluice. */
const mostHooks = 5

/** Makes the hooks of a destination of the type Webhooks. */
export function classicHooks(settings: Item, secrets: Secrets): readonly Definition[] {
  const given = [
    ...listOf(settings['hooks']).map(recordOf),
    // Older workspaces have their first URL here too.
    { hook: settings['globalHook'] },
  ]
  const hooks = new Map<string, Definition>()
  for (const hook of given) {
    const url = textOf(hook, 'hook').trim()
    if (url !== '' && !hooks.has(url)) hooks.set(url, hookOf(url, headersOf(hook['headers']), secrets))
  }
  if (hooks.size === 0) throw new LeftOut('it has no URL', 'write the destination by hand')
  if (hooks.size > mostHooks)
    throw new LeftOut(`it has more than ${mostHooks} URLs`, 'make two destinations of it')
  return [...hooks.values()]
}

/** The headers of a hook are a list of pairs, of which empty ones are left in forms that nobody filled in. */
function headersOf(value: unknown): readonly (readonly [string, string])[] {
  return listOf(value)
    .map(recordOf)
    .flatMap((header) => {
      const name = textOf(header, 'key').trim()
      return name === '' ? [] : [[name, textOf(header, 'value').trim()] as const]
    })
}

/** Makes a hook. A login in the URL becomes a login of the hook, and secrets of headers become variables. */
export function hookOf(
  text: string,
  headers: readonly (readonly [name: string, value: string])[],
  secrets: Secrets,
): Definition {
  const parsed = URL.parse(text)
  const username = decoded(parsed?.username ?? '')
  const password = decoded(parsed?.password ?? '')
  const hasLogin = username !== '' || password !== ''
  const url = hasLogin ? text.replace(/^(https?:\/\/)[^/?#]*@/i, '$1') : text
  const own = headers.filter(([name]) => name.toLowerCase() !== 'content-type')
  const shown = own.map(([name, value]) => [name, headerValue(name, value, secrets)] as const)
  return {
    url: literal(url),
    ...(shown.length > 0 && { headers: Object.fromEntries(shown) }),
    ...(hasLogin && {
      login: {
        kind: 'basic',
        username,
        ...(password !== '' && { password: secrets.put('PASSWORD', password) }),
      },
    }),
  }
}

/** Returns a part of a URL without percent-encoding, or as it is if it isn't encoded well. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

function headerValue(name: string, value: string, secrets: Secrets): string {
  const maySecret = /auth|token|secret|key|passw|signature|cookie|credential/i.test(name)
  return maySecret && value !== '' ? secrets.put(name, value) : literal(value)
}

/** Says what can't stay as it is although a URL is taken over. */
export function urlNotes(hooks: readonly Definition[], about: string): readonly Note[] {
  const ofSegment = hooks.some(
    ({ url }) => isString(url) && /^https?:\/\/[^/]*\.segmentapis\.com\//i.test(url),
  )
  if (!ofSegment) return []
  const problem = 'its URL is a function that runs at Segment'
  return [{ kind: 'to do', about, problem, way: 'run the function yourself, or leave the destination out' }]
}
