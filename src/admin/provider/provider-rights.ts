import { readScope, type TokenScope } from '../scope.ts'
import { type AdminRight, rights, seesContentByDefault } from '../tokens.ts'

/** What somebody may do in whose claim an OpenID provider sends a value. */
export type ProviderRight = {
  readonly value: string
  readonly right: AdminRight
  readonly seesContent: boolean
  readonly scope: TokenScope
}

/** The form of a setting that gives rights. */
export const providerRightForm = 'VALUE: RIGHT [content|no-content] [KEY=VALUE]'

const form = /^(.{1,200}): +(\w+)((?: +\S+){0,2})$/

/**
 * Reads a text such as `support: read content tenant=acme`: whoever has the value `support` in the claim
 * reads what has the label, and sees content. Without a label, the right is for the whole installation.
 */
export function readProviderRight(text: string): ProviderRight | undefined {
  const [, value = '', word = '', rest = ''] = form.exec(text.trim()) ?? []
  const right = rights.find((known) => known === word)
  const words = rest.split(/ +/).filter((one) => one !== '')
  const said = words.filter((one) => one === 'content' || one === 'no-content')
  const labels = words.filter((one) => one.includes('='))
  const [label] = labels
  const scope = readScope(label === undefined ? 'all' : { label })
  const isWhole = said.length <= 1 && labels.length <= 1 && said.length + labels.length === words.length
  if (right === undefined || scope === undefined || !isWhole) return undefined
  const seesContent = said.length === 0 ? seesContentByDefault(right) : said[0] === 'content'
  return { value, right, seesContent, scope }
}
