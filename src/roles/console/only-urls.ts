import { hookIdOf } from '../../catalog/hook-patch.ts'
import { listOf, recordOf } from '../../catalog/plain-data.ts'

/**
 * Returns a patch that changes the URLs of hooks and nothing else. A header that was set for another host is
 * refused with the change, so no secret of it goes to the new one. `undefined`: the patch asks for more.
 */
export function onlyUrls(shown: Readonly<Record<string, unknown>>, body: unknown): object | undefined {
  const { hooks, ...others } = recordOf(body)
  if (!Array.isArray(hooks) || Object.keys(others).length > 0) return undefined
  const present = listOf(shown['hooks']).map(recordOf)
  const urls = new Map<unknown, unknown>()
  for (const hook of hooks.map(recordOf)) {
    const { id, url, ...more } = hook
    if (typeof url !== 'string' || Object.keys(more).length > 0 || urls.has(id)) return undefined
    if (!present.some((one) => hookIdOf(one) === id)) return undefined
    // A variable or what is kept of elsewhere may stand for a secret.
    if (url.includes('${')) return undefined
    urls.set(id, url)
  }
  return { hooks: present.map((hook) => ({ ...hook, url: urls.get(hookIdOf(hook)) ?? hook['url'] })) }
}
