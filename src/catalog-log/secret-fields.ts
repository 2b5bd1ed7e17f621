import { secretLoginFields } from '../catalog/features/hook-login.ts'
import { tlsFields } from '../catalog/features/hook-tls.ts'
import { isRecord, listOf, recordOf } from '../catalog/plain-data.ts'
import type { ObjectKind } from './names.ts'

/** A text of a definition that may be secret, and is sealed in the topic. */
export type SecretField = {
  /** The keys and positions that lead to the text. */
  readonly path: readonly (string | number)[]
  /** The name of the field, which doesn't depend on positions. */
  readonly field: string
  /** The URL of the hook to which the text is sent. Absent if the text is sent nowhere. */
  readonly hookUrl?: string
  /** The URL of the token endpoint to which the text is sent too. Absent: it is sent to no such endpoint. */
  readonly tokenUrl?: string
}

type Definition = Readonly<Record<string, unknown>>

/**
 * Returns a copy of a definition in which `replace` has replaced each text that may be secret: secrets,
 * server keys, URLs, the values of headers, logins and client certificates. The definition need not be valid.
 */
export function withSecretFields(
  kind: ObjectKind,
  definition: Definition,
  replace: (text: string, at: SecretField) => string,
): Record<string, unknown> {
  const copy = { ...definition }
  if (kind === 'token') return copy
  const text = (value: unknown, at: SecretField): unknown =>
    typeof value === 'string' ? replace(value, at) : value
  if (kind === 'source') {
    if (Array.isArray(copy['serverKeys']))
      copy['serverKeys'] = listOf(copy['serverKeys']).map((key, index) =>
        text(key, { path: ['serverKeys', index], field: 'serverKeys' }),
      )
    return copy
  }
  for (const field of ['sharedSecret', 'nextSharedSecret'])
    if (copy[field] !== undefined) copy[field] = text(copy[field], { path: [field], field })
  const { ed25519 } = recordOf(copy['signing'])
  if (Array.isArray(ed25519)) {
    const keys = listOf(ed25519).map((key, index) =>
      text(key, { path: ['signing', 'ed25519', index], field: 'signing/ed25519' }),
    )
    copy['signing'] = { ...recordOf(copy['signing']), ed25519: keys }
  }
  if (Array.isArray(copy['hooks']))
    copy['hooks'] = listOf(copy['hooks']).map((hook, index) =>
      isRecord(hook) ? hookWith(hook, ['hooks', index], text) : hook,
    )
  return copy
}

function hookWith(
  hook: Definition,
  path: readonly (string | number)[],
  text: (value: unknown, at: SecretField) => unknown,
): Definition {
  const { url, headers, login, tls } = hook
  const hookUrl = typeof url === 'string' ? url : ''
  const ofHeaders = Object.entries(recordOf(headers)).map(([name, value]) => {
    const field = `headers/${name.toLowerCase()}`
    return [name, text(value, { path: [...path, 'headers', name], field, hookUrl })] as const
  })
  return {
    ...hook,
    ...(url !== undefined && { url: text(url, { path: [...path, 'url'], field: 'url', hookUrl }) }),
    ...(isRecord(headers) && { headers: Object.fromEntries(ofHeaders) }),
    ...(isRecord(login) && { login: partWith(login, secretLoginFields, 'login') }),
    ...(isRecord(tls) && { tls: partWith(tls, tlsFields, 'tls') }),
  }

  function partWith(part: Definition, fields: readonly string[], name: string): Definition {
    const texts = fields.flatMap((key) => {
      const value = part[key]
      const { tokenUrl } = part
      const at = {
        path: [...path, name, key],
        field: `${name}/${key}`,
        hookUrl,
        ...(typeof tokenUrl === 'string' && { tokenUrl }),
      }
      return value === undefined ? [] : [[key, text(value, at)] as const]
    })
    return { ...part, ...Object.fromEntries(texts) }
  }
}
