import { hash } from 'node:crypto'

// The rules for a hook's URL and headers. They are checked when the catalog is read. They are checked again
// when a hook is prepared for delivery, so that no request is passed to undici that undici would refuse.

export const maxUrlCharacters = 2048
export const maxHeaders = 50
/**
 * Limit on the bytes of all headers in a request. For each header, its name, its value and four more bytes
 * are counted.
 */
export const maxHeaderBytes = 8 * 1024

/**
 * A breach of a rule. `problem` describes the fault, and `advice` says what to write instead. Neither text
 * contains the value.
 */
export type Breach = {
  readonly problem: string
  readonly advice: string
  /** The name of the variable that isn't set, if this is the breach. */
  readonly variable?: string
  /** True if the value of this variable has to be a URL or its beginning. */
  readonly isUrl?: boolean
  /** True if the value of this variable has to be a certificate or a key in PEM. */
  readonly isPem?: boolean
}

export type HookUrl = {
  /** The URL in its normal form: ASCII, with a path. */
  readonly url: string
  /** The scheme, host and port of the URL, such as `https://example.com:8443`. */
  readonly origin: string
  /** The path and the query. The path is at least `/`. */
  readonly path: string
}

type Header = readonly [name: string, value: string]

const urlExample = 'write a full URL such as https://example.com/hook'

/**
 * Reads the URL of a hook. This function is stricter than `new URL`, which accepts and repairs texts that the
 * operator should correct.
 */
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
  const breach = portBreach(parsed.port) ?? hostNameBreach(parsed.hostname)
  if (breach !== undefined) return { ok: false, breaches: [breach] }
  // After these checks, the normal form of the URL (WHATWG) has only visible ASCII characters. These are
  // allowed in a request line.
  const { origin } = parsed
  const path = parsed.pathname + queryAsWritten(text)
  return { ok: true, url: origin + path, origin, path }
}

/**
 * Returns the query of a URL, with `?`. WHATWG encodes `'` in queries of `http`, as no other client does, and
 * servers with OData tell `'` and `%27` apart.
 */
function queryAsWritten(text: string): string {
  const query = text.indexOf('?')
  return query === -1 ? '' : (URL.parse(`other:${text.slice(query)}`)?.search ?? '')
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
    refuse('has a user name or password', 'remove it, and write a login of the kind basic instead')
  }
  const port = Number(/:(\d+)$/.exec(authority)?.[1] ?? 1)
  if (port < 1 || port > 65_535) refuse('has a port out of range', 'write a port from 1 to 65535')
  return breaches
}

/**
 * Ports of services other than HTTP that read commands as lines of text, such as mail and IRC. A POST to such
 * a port is an attack or a mistake. Source: the "bad ports" of WHATWG Fetch, which browsers and `fetch`
 * refuse too.
 */
const badPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

function portBreach(port: string): Breach | undefined {
  if (!badPorts.has(Number(port))) return undefined
  return {
    problem: `has the port ${Number(port)}, which is kept for another protocol`,
    advice: 'let the receiver listen on another port, such as 443 or 8080',
  }
}

/** The limits of DNS (RFC 1035, 2.3.4). `new URL` doesn't check them. */
const maxNameCharacters = 253
const maxLabelCharacters = 63

/**
 * Checks a host. The host must be in the normal form of WHATWG: names in lower case and in ASCII (IDNA), IPv4
 * addresses as four numbers, and IPv6 addresses in brackets.
 */
function hostNameBreach(host: string): Breach | undefined {
  if (host.startsWith('[')) return undefined
  if (host.endsWith('.')) {
    return { problem: 'has a host name that ends with a dot', advice: 'write it without the last dot' }
  }
  const labels = host.split('.')
  if (host.length > maxNameCharacters || labels.some((label) => label.length > maxLabelCharacters)) {
    return {
      problem: 'has a host name that is too long for DNS',
      advice: `keep to ${maxNameCharacters} characters, ${maxLabelCharacters} between two dots`,
    }
  }
  // Underscores are not allowed in host names, but they are common inside clusters.
  if (labels.some((label) => !/^[a-z0-9_-]+$/.test(label))) {
    return {
      problem: 'has a host name that DNS does not have',
      advice: 'write letters, digits, - and _ with single dots between them',
    }
  }
  return undefined
}

/**
 * Returns an id for a hook that has no id in the catalog. It is the first 8 hex characters of the SHA-1 hash
 * of the URL in normal form. `template` is given instead if the URL has a variable: the text before the
 * variable is filled in. So the id tells nothing about a secret, and stays the same when the secret changes.
 */
export function hookIdOf(url: string, template = url): string {
  return hash('sha1', template).slice(0, 8)
}

/**
 * The headers that a hook can't set. Some are needed for the request itself, and some control the connection.
 * The others tell receivers that a request is signed, replayed or a test.
 */
const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
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
  'x-sluice-attempt',
  'x-sluice-message-id',
  'x-sluice-replay',
  'x-sluice-test',
])
const reservedPrefixes = ['proxy-', 'webhook-']

/**
 * Checks the name of a header. The name must be a token (RFC 9110, 5.6.2). It must not be a name that Sluice
 * or HTTP reserves.
 */
export function headerNameBreach(name: string): Breach | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    return {
      problem: name === '' ? 'is an empty header name' : 'is not a header name',
      advice: 'write letters, digits and - only, such as X-Team',
    }
  }
  // CGI and similar interfaces treat `_` like `-`. So `Transfer_Encoding` can be used to smuggle a second
  // request.
  const lowerCase = name.toLowerCase().replaceAll('_', '-')
  if (reservedHeaders.has(lowerCase) || reservedPrefixes.some((prefix) => lowerCase.startsWith(prefix))) {
    return { problem: 'is a header that is not free to set', advice: 'remove it, or choose another name' }
  }
  return undefined
}

/**
 * Checks the value of a header. The value may have visible Latin-1 characters, and spaces and tabs between
 * them. It may be empty.
 */
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

/** Checks the rules that concern all headers of one hook together. */
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

/**
 * Returns the first breach of a rule by a hook. Returns `undefined` if undici will accept requests to the
 * hook. This function is called when a hook is prepared for delivery.
 */
export function hookBreach(hook: {
  readonly origin: string
  readonly path: string
  readonly headers: readonly Header[]
}): Breach | undefined {
  const url = parseHookUrl(hook.origin + hook.path)
  if (!url.ok) return url.breaches[0]
  if (url.origin !== hook.origin || url.path !== hook.path) {
    return { problem: 'is not the normal form of its URL', advice: 'write it as `new URL` gives it back' }
  }
  for (const [name, value] of hook.headers) {
    const breach = headerNameBreach(name) ?? headerValueBreach(value)
    if (breach !== undefined) return breach
  }
  return headersBreach(hook.headers)
}
