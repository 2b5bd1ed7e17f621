/** Returns true for a URL of HTTP or HTTPS without a login, a query or a fragment. */
export function isPlainUrl(given: string): boolean {
  const url = URL.parse(given)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
  return url.username === '' && url.password === '' && url.search === '' && url.hash === ''
}
