import { unescaped } from './unescaped.ts'

// Says which texts are secret, in requests and in the answers that could repeat them.

/**
 * A text with fewer characters than this number doesn't count as a secret, because it could occur in an
 * answer by chance. `minPartCharacters`: the same for a part of a secret.
 */
export const minSecretCharacters = 6
export const minPartCharacters = 8

/**
 * Returns the secrets of a request that an answer could repeat. From each header, takes the value, the part
 * of the value after the authentication scheme, and for Basic authentication the login (`user:password`) and
 * the password. From the URL, takes the path, the query, and the values of the query.
 */
export function secretsOf(headers: readonly string[], path: string): string[] {
  return [...headers.flatMap(textsOfHeader), ...textsOfPath(path)]
}

/** Returns the texts that count as secrets, and their parts that look like tokens, each of them once. */
export function withParts(texts: readonly string[]): string[] {
  const secrets = texts.filter(({ length }) => length >= minSecretCharacters)
  return [...new Set(secrets.flatMap((text) => [text, ...partsOf(text), ...partsOf(plainOf(text))]))]
}

function textsOfHeader(value: string): string[] {
  const end = value.search(/\s/)
  if (end === -1) return [value]
  const given = value.slice(end).trim()
  if (value.slice(0, end).toLowerCase() !== 'basic') return [value, given]
  const login = Buffer.from(given, 'base64').toString('utf8')
  const colon = login.indexOf(':')
  const password = login.slice(colon + 1)
  // An API key is often the user of a login without a password.
  return [value, given, login, password === '' ? login.slice(0, colon) : password]
}

function textsOfPath(path: string): string[] {
  const query = path.indexOf('?')
  if (query === -1) return [path]
  const pairs = path.slice(query + 1).split('&')
  // A `+` stands for a space. Other escapes stay, because a secret is also looked for without its escapes.
  const values = pairs.flatMap((pair) =>
    pair.includes('=') ? [pair.slice(pair.indexOf('=') + 1).replaceAll('+', ' ')] : [],
  )
  return [path, path.slice(0, query), path.slice(query), ...values]
}

/**
 * Returns the parts of a text that look like tokens. A text is split at each character that is neither a
 * letter nor a digit, and also only at those characters that tokens don't contain.
 */
function partsOf(text: string): string[] {
  return [betweenTokens, betweenWords].flatMap((separator) => text.split(separator)).filter(isToken)
}

const betweenTokens = /[\s!"#$&'()*,/:;<=>?@[\\\]^`{|}]+/
const betweenWords = /[\s!-/:-@[-`{-~]+/

/**
 * Returns true if a part has a digit, or has both small letters and capitals. A plain word, which may begin
 * with a capital, is never a token.
 */
function isToken(part: string): boolean {
  if (part.length < minPartCharacters) return false
  return /\d/.test(part) || (/\p{Ll}/u.test(part) && /.\p{Lu}/su.test(part))
}

function plainOf(text: string): string {
  return Buffer.from(unescaped(Buffer.from(text)).bytes).toString('utf8')
}
