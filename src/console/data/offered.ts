import type { PageName } from './route.ts'
import { isForAll, may } from './session.ts'

/** Tells whether the session may use a page. What it may not use isn't in the menu. */
export function isOffered(page: PageName): boolean {
  switch (page) {
    case 'audit':
    case 'tokens':
    case 'sessions':
      return may('admin')
    case 'links':
      return may('operate')
    case 'audiences':
      return may('read')
    case 'history':
      return isForAll.value
    default:
      return true
  }
}
