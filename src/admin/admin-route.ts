import type { ProblemCode } from './problem.ts'
import type { AdminRight } from './tokens.ts'

/** Of one call what `sluice admin` takes and answers: its server and its document are made of it. */
export type AdminRoute = {
  readonly call: AdminCall
  readonly method: 'GET' | 'POST'
  /** As in OpenAPI. */
  readonly path: string
  readonly right: AdminRight
  readonly summary: string
  readonly description: string
  readonly params?: Readonly<Record<string, Parameter>>
  readonly query?: Readonly<Record<string, Parameter>>
  readonly body?: { readonly schema: object; readonly example: object }
  readonly status: 200 | 201
  readonly answer: { readonly schema: object; readonly example: object }
  /** Beside those that every route may have. */
  readonly problems: readonly ProblemCode[]
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
  | 'search_log'
  | 'count_log'
  | 'show_log'
  | 'list_audit'

/** All values of a path or a query are text. */
type Parameter = {
  readonly schema: { readonly type: 'string' } & Readonly<Record<string, unknown>>
  readonly description: string
  readonly example: string
}
