import type { ProblemCode } from './problem.ts'
import type { AdminRight } from './tokens.ts'

/**
 * The description of one call of the admin API: its parameters, body and answers. The server's routes and the
 * OpenAPI document are made from these descriptions.
 */
export type AdminRoute = {
  readonly call: AdminCall
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path, in OpenAPI's notation. */
  readonly path: string
  readonly right: AdminRight
  readonly scope: RouteScope
  /** True if it shows what messages contain: then the token must see content (`Token.seesContent`). */
  readonly showsContent?: true
  /** True: it needs no token, because it judges what it is given itself. */
  readonly isOpen?: true
  /** True: the answer has server-sent events, and no end. */
  readonly isStream?: true
  readonly summary: string
  readonly description: string
  readonly params?: Readonly<Record<string, Parameter>>
  readonly query?: Readonly<Record<string, Parameter>>
  /** The conditions in the header of a request, by name. */
  readonly headers?: Readonly<Record<string, Parameter>>
  /** `documented`: the schema in the OpenAPI document, if the call itself checks more than `schema`. */
  readonly body?: { readonly schema: object; readonly documented?: object; readonly example: object }
  /** Limit on the body, in bytes, if it is not the usual one. Few such bodies are taken at the same time. */
  readonly maxBodyBytes?: number
  /** 204: the answer has no body. */
  readonly status: 200 | 201 | 204
  readonly answer: { readonly schema: object; readonly example: object }
  /** The problems with which this route may answer, in addition to the problems that every route has. */
  readonly problems: readonly ProblemCode[]
}

/**
 * What a token with a scope may do by a route.
 *
 * - `token`: all of it, because the call concerns only the token itself.
 * - `destination`: the path names a `{destination}`. What is outside of the scope is answered with 404, by
 *   the server, before the call.
 * - `within`: the call itself keeps to the scope of the token: a list, a search, or a body that names
 *   objects.
 * - `installation`: nothing. The call concerns the whole installation.
 */
export type RouteScope = 'token' | 'destination' | 'within' | 'installation'

/**
 * Returns true if a route is open to tokens with a scope. A route that declares nothing is closed to them.
 */
export function isOpenToScopes({ scope }: { readonly scope?: RouteScope }): boolean {
  return scope === 'token' || scope === 'destination' || scope === 'within'
}

export type AdminCall =
  | 'health'
  | 'preview_replay'
  | 'create_replay'
  | 'list_replays'
  | 'show_replay'
  | 'stop_replay'
  | 'resume_replay'
  | 'show_message'
  | 'show_content'
  | 'search_log'
  | 'count_log'
  | 'summarize_dead_letters'
  | 'show_log'
  | 'list_destinations'
  | 'show_status'
  | 'list_audiences'
  | 'show_destination_health'
  | 'show_signing_keys'
  | 'test_destination'
  | 'change_destinations'
  | 'list_paused'
  | 'resume_destination'
  | 'retry_destination'
  | 'drop_destination'
  | 'list_audit'
  | 'list_sources'
  | 'list_source_events'
  | 'search_events'
  | 'preview'
  | 'preview_source'
  | 'sign_in'
  | 'show_session'
  | 'sign_out'
  | 'create_code'
  | 'list_sessions'
  | 'remove_session'
  | 'remove_sessions'
  | 'live'
  | 'list_links'
  | 'create_link'
  | 'remove_link'
  | 'list_tokens'
  | 'create_token'
  | 'remove_token'
  | 'list_catalog_changes'
  | 'show_catalog_change'
  | 'undo_catalog_change'
  | 'apply_catalog'
  | 'rotate_secret'
  | 'end_secret'
  | `${'show' | 'put' | 'patch' | 'remove'}_${'destination' | 'source'}`

/**
 * A parameter of a path, a query or a header. Its value is always text. `documented`: how the OpenAPI
 * document describes it, if the text stands for a number or a boolean.
 */
export type Parameter = {
  readonly schema: { readonly type: 'string' } & Readonly<Record<string, unknown>>
  readonly documented?: { readonly schema: object; readonly example: number | boolean }
  readonly description: string
  readonly example: string
}
