import type { RouteScope } from '../src/admin/admin-route.ts'
import { adminRoutes } from '../src/admin/routes.ts'
import { alignTable } from '../src/config/markdown.ts'
import { replaceMarked } from './marked-part.ts'

const marks = {
  begin: '<!-- routes: written by `npm run generate` from src/admin/routes.ts -->',
  end: '<!-- end of routes -->',
}

/** What a token with a scope may do by a route. */
const withScope = {
  token: 'yes',
  destination: 'destinations of the scope',
  within: 'within the scope',
  installation: 'no',
} as const satisfies Record<RouteScope, string>

/**
 * Returns the text of `docs/admin-api.md` with a new table of the calls. Throws if the page lacks the marks
 * around it.
 */
export function adminApiMarkdown(page: string): string {
  const rows = adminRoutes.map(({ method, path, right, scope, showsContent, summary }) => [
    `\`${method} ${path}\``,
    showsContent === true ? `\`${right}\`, content` : `\`${right}\``,
    withScope[scope],
    summary,
  ])
  const table = alignTable([['call', 'right', 'a token with a scope', ''], ...rows])
  const made = replaceMarked(page, marks, table)
  if (made === undefined) throw new Error('docs/admin-api.md has lost the marks around its calls')
  return made
}
