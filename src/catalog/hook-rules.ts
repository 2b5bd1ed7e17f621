import { createHash } from 'node:crypto'

/**
 * What a hook's URL and headers may be. Pure: the catalog checks with it when it is read, and delivery before it
 * hands a request to undici, whose Pool loses a slot for ever on a request that it refuses itself.
 */

export const maxUrlCharacters = 2048
export const maxHeaders = 50
/** Names, values and four bytes for each line, as they go over the wire. */
export const maxHeaderBytes = 8 * 1024

/** Which rule was broken, without the value: what is wrong, and what to write instead. */
export type Breach = { readonly problem: string; readonly advice: string }

export type HookUrl = {
  /** The normal form: ASCII, with a path. */
  readonly url: string
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query, at least `/`. */
  readonly path: string
}

type Header = readonly [name: string, value: string]

const urlExample = 'write a full URL such as https://example.com/hook'

/** Reads the URL of a hook. Stricter than `new URL`, which repairs what is better asked about. */
export function parseHookUrl(
  text: string,
): ({ ok: true } & HookUrl) | { ok: false; breaches: readonly [Breach, ...Breach[]] } {
  const [first, ...others] = spellingBreaches(text)
  if (first !== undefined) return { ok: false, breaches: [first, ...others] }

  const parsed = URL.parse(text)
  if (parsed === null || parsed.href.length > maxUrlCharacters) {
    const problem = parsed === null ? 'is not a valid URL' : 'is too long once it is percent-encoded'
    return { ok: false, breaches: [{ problem, advice: urlExample }] }
  }
  // WHATWG's normal form has only visible ASCII here: what a request line can carry.
  return { ok: true, url: parsed.href, origin: parsed.origin, path: parsed.pathname + parsed.search }
}

function spellingBreaches(text: string): readonly Breach[] {
  const breaches: Breach[] = []
  const refuse = (problem: string, advice: string) => breaches.push({ problem, advice })

  if (text.length > maxUrlCharacters) {
    refuse(`is longer than ${maxUrlCharacters} characters`, 'write a shorter URL')
  }
  if (/[\s\p{Cc}\p{Zs}]/u.test(text)) {
    refuse('has white space or a control character', 'remove it, or write %20 for a space')
  }
  if (!text.isWellFormed()) refuse('is not well-formed Unicode', 'write it anew')
  if (text.includes('\\')) refuse('has a backslash', 'write / or, for the character itself, %5C')
  if (text.includes('#')) {
    refuse('has a fragment (#), which is never sent', 'remove it, or write %23 for the character')
  }
  const authority = /^\s*https?:\/\/([^/?#\\]+)/i.exec(text)?.[1]
  if (authority === undefined) {
    refuse('is not a full http or https URL', urlExample)
    return breaches
  }
  if (authority.includes('@')) {
    refuse('has a user name or password', 'remove it, and set an Authorization header instead')
  }
  const port = Number(/:(\d+)$/.exec(authority)?.[1] ?? 1)
  if (port < 1 || port > 65_535) refuse('has a port out of range', 'write a port from 1 to 65535')
  return breaches
}

/** The id of a hook that has none: 8 hex characters of the SHA-1 of its URL's normal form. */
export function hookIdOf(url: string): string {
  return createHash('sha1').update(url).digest('hex').slice(0, 8)
}

/** The rules of a shared secret. White space at an end is nearly always a file's last line break. */
export function secretBreach(secret: string): Breach | undefined {
  if (/\p{Cc}/u.test(secret)) return { problem: 'has a control character or line break', advice: 'remove it' }
  if (/^\s|\s$/.test(secret)) return { problem: 'begins or ends with white space', advice: 'remove it' }
  if (!secret.isWellFormed()) return { problem: 'is not well-formed Unicode', advice: 'write another secret' }
  return undefined
}

/** Headers that the request itself needs, that frame the connection, or that receivers take for a signature. */
const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-signature',
])
const reservedPrefixes = ['proxy-', 'webhook-']

/** The rules of a header's name: a token (RFC 9110, 5.6.2) that Sluice or HTTP doesn't keep to itself. */
export function headerNameBreach(name: string): Breach | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    return {
      problem: name === '' ? 'is an empty header name' : 'is not a header name',
      advice: 'write letters, digits and - only, such as X-Team',
    }
  }
  const lowerCase = name.toLowerCase()
  if (reservedHeaders.has(lowerCase) || reservedPrefixes.some((prefix) => lowerCase.startsWith(prefix))) {
    return { problem: 'is a header that is not free to set', advice: 'remove it, or choose another name' }
  }
  return undefined
}

/** The rules of a header's value: visible Latin-1, with spaces and tabs inside only. It may be empty. */
export function headerValueBreach(value: string): Breach | undefined {
  if (/[\r\n]/.test(value)) return { problem: 'has a line break', advice: 'write it in one line' }
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  if (/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/.test(value)) {
    return { problem: 'has a control character', advice: 'remove it' }
  }
  if (!/^[\t\x20-\x7e\xa0-\xff]*$/.test(value)) {
    return {
      problem: 'has a character outside of Latin-1',
      advice: 'write plain ASCII, or encode it (base64, percent)',
    }
  }
  if (/^[\t ]|[\t ]$/.test(value)) {
    return { problem: 'begins or ends with white space', advice: 'remove it' }
  }
  return undefined
}

/** The rules that span all headers of one hook. */
export function headersBreach(headers: readonly Header[]): Breach | undefined {
  if (headers.length > maxHeaders) {
    return { problem: `has more than ${maxHeaders} headers`, advice: `keep at most ${maxHeaders}` }
  }
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  if (bytes > maxHeaderBytes) {
    return { problem: `has ${bytes} bytes of headers`, advice: `keep at most ${maxHeaderBytes}` }
  }
  return undefined
}

/** The first rule that a hook breaks, as it is about to be sent; `undefined`: undici will take it. */
export function hookBreach(hook: { url: string; headers: readonly Header[] }): Breach | undefined {
  const url = parseHookUrl(hook.url)
  if (!url.ok) return url.breaches[0]
  for (const [name, value] of hook.headers) {
    const breach = headerNameBreach(name) ?? headerValueBreach(value)
    if (breach !== undefined) return breach
  }
  return headersBreach(hook.headers)
}
