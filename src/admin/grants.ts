import type { AdminCall } from './admin-route.ts'
import { type AdminRight, type Grant, mayDo, type Token } from './tokens.ts'

/** The right that a token needs itself to give a grant to somebody else. */
export const rightOf = {
  see: 'read',
  answers: 'read',
  replay: 'operate',
  test: 'operate',
  edit_url: 'admin',
  rotate: 'admin',
} as const satisfies Record<Grant, AdminRight>

/** The calls of each grant. What no grant names, no link may use. */
const callsOf: Readonly<Record<Grant, readonly AdminCall[]>> = {
  see: [
    'list_destinations',
    'show_destination',
    'show_destination_health',
    'show_signing_keys',
    'list_paused',
    'search_log',
    'count_log',
    'summarize_dead_letters',
    'show_message',
    'live',
    'list_replays',
    'show_replay',
    'list_sources',
    'show_source',
  ],
  // It opens no call: what those of `see` show has the answers too.
  answers: [],
  replay: ['preview_replay', 'create_replay', 'stop_replay', 'resume_replay', 'retry_destination'],
  test: ['test_destination'],
  edit_url: ['patch_destination'],
  rotate: ['rotate_secret', 'end_secret'],
}
const ofEach: ReadonlySet<AdminCall> = new Set(['health', 'show_session', 'sign_out'])

/** Returns true if a token may use a route, whatever the route is asked for. */
export function mayUse(
  token: Pick<Token, 'right' | 'grants' | 'seesContent'>,
  {
    call,
    right,
    showsContent = false,
  }: { readonly call: AdminCall; readonly right: AdminRight; readonly showsContent?: boolean },
): boolean {
  if (showsContent && !token.seesContent) return false
  if (token.grants === undefined) return mayDo(token, right)
  return ofEach.has(call) || [...token.grants].some((grant) => callsOf[grant].includes(call))
}
