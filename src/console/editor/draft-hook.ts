import type { Hook } from '../data/types.ts'
import { given, ifAny, lines, objectAt, pairOf, pairs, textAt, textOf, without } from './draft-text.ts'

type LoginText = 'username' | 'password' | 'tokenUrl' | 'clientId' | 'clientSecret' | 'scope' | 'audience'
export type LoginKind = 'none' | 'basic' | 'oauth2'

/** The texts of a login by its kind. */
const textsOfLogin: Readonly<Record<LoginKind, readonly LoginText[]>> = {
  none: [],
  basic: ['username', 'password'],
  oauth2: ['tokenUrl', 'clientId', 'clientSecret', 'scope', 'audience'],
}
/** The texts that may be secret, so that they are sent as they were typed. */
const secrets: ReadonlySet<LoginText> = new Set<LoginText>(['username', 'password', 'clientSecret'])
const textsOfTls = ['certificate', 'key', 'ca'] as const

/**
 * A URL as a form has it. `headers` has one `Name: value` a line. A text that is secret is `${kept:…}` until
 * somebody types another one.
 */
export type DraftHook = {
  readonly url: string
  readonly id: string
  readonly headers: string
  readonly login: LoginKind
  readonly clientAuth: 'basic' | 'post'
  /** As the hook was opened. Fields that the form lacks stay as they are. */
  readonly rest: Hook
} & Readonly<Record<LoginText | (typeof textsOfTls)[number], string>>

export function draftHookOf(hook: Hook): DraftHook {
  const login = objectAt(hook, 'login')
  const tls = objectAt(hook, 'tls')
  const kind = login['kind'] === 'basic' || login['kind'] === 'oauth2' ? login['kind'] : 'none'
  return {
    url: hook.url,
    id: hook.id ?? '',
    headers: pairs(hook.headers ?? {}, ': '),
    login: kind,
    username: textAt(login, 'username'),
    password: textAt(login, 'password'),
    tokenUrl: textAt(login, 'tokenUrl'),
    clientId: textAt(login, 'clientId'),
    clientSecret: textAt(login, 'clientSecret'),
    scope: textAt(login, 'scope'),
    audience: textAt(login, 'audience'),
    clientAuth: login['clientAuth'] === 'post' ? 'post' : 'basic',
    certificate: textAt(tls, 'certificate'),
    key: textAt(tls, 'key'),
    ca: textAt(tls, 'ca'),
    rest: hook,
  }
}

/** Returns the hook that a form describes. Fields that are empty are left out. */
export function hookOf(draft: DraftHook): Hook {
  const headers = lines(draft.headers).map((line) => pairOf(line, ':'))
  const tls = textsOfTls.map((name) => [name, draft[name]] as const).filter(([, text]) => text !== '')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server checks it
  return given({
    ...without(draft.rest, ['url', 'id', 'headers', 'login', 'tls']),
    url: draft.url.trim(),
    id: textOf(draft.id),
    headers: ifAny(Object.fromEntries(headers)),
    login: loginOf(draft),
    tls: ifAny(Object.fromEntries(tls)),
  }) as Hook
}

function loginOf(draft: DraftHook): object | undefined {
  const { login: kind, clientAuth, rest } = draft
  if (kind === 'none') return undefined
  const texts = textsOfLogin[kind].map((name) => [name, textIn(draft, name)] as const)
  const isSaid = kind === 'oauth2' && (clientAuth === 'post' || 'clientAuth' in objectAt(rest, 'login'))
  return given({ kind, ...Object.fromEntries(texts), clientAuth: isSaid ? clientAuth : undefined })
}

function textIn(draft: DraftHook, name: LoginText): string | undefined {
  const text = draft[name]
  return secrets.has(name) ? (text === '' ? undefined : text) : textOf(text)
}

/**
 * Returns the patch of a session that may change URLs and nothing else: the URLs that differ. `ids` are those
 * of the hooks, in their order.
 */
export function urlPatchOf(
  before: readonly Hook[],
  after: readonly Hook[],
  ids: readonly string[],
): { readonly hooks: readonly { readonly id: string | undefined; readonly url: string }[] } {
  const changed = after.flatMap(({ url }, at) =>
    url === before[at]?.url ? [] : [{ id: before[at]?.id ?? ids[at], url }],
  )
  return { hooks: changed }
}

/**
 * Returns the hooks of a patch. What was there and is no more is null, because the server refuses a patch
 * that takes away a header or a login without a word.
 */
export function patchHooksOf(
  before: readonly Hook[],
  after: readonly Hook[],
): readonly Readonly<Record<string, unknown>>[] {
  const partly = (hook: Hook, field: 'headers' | 'tls'): object =>
    hook[field] === undefined
      ? {}
      : { [field]: withNulls(objectAt(hook, field), namesIn(before.map((one) => objectAt(one, field)))) }
  return after.map((hook) =>
    withNulls({ ...hook, ...partly(hook, 'headers'), ...partly(hook, 'tls') }, namesIn(before)),
  )
}

function namesIn(fields: readonly object[]): readonly string[] {
  return fields.flatMap((one) => Object.keys(one))
}

function withNulls(
  fields: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  return { ...Object.fromEntries(names.map((name) => [name, null])), ...fields }
}
