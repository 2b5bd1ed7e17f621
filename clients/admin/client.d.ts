import type { paths, Problem } from './schema.d.ts'

export type * from './schema.d.ts'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never
}[keyof paths]
type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends Record<M, infer O> ? O : never

/** The answer of a call that succeeds. */
export type Answer<M extends Method, P extends PathOf<M>> = AnswerOf<Operation<M, P>>
type Json<T> = { content: { 'application/json': T } }
type AnswerOf<O> = O extends { responses: { 200: Json<infer A> } | { 201: Json<infer A> } } ? A : undefined

type PathPart<O> = O extends { parameters: { path: infer T extends object } } ? { path: T } : unknown
type QueryPart<O> = O extends { parameters: { query?: infer T } } ? { query?: T | undefined } : unknown
type BodyPart<O> = O extends { requestBody: Json<infer T> } ? { body: T } : unknown
type Header<O, Name extends string> = O extends { parameters: { header?: infer H } }
  ? NonNullable<H> extends never
    ? never
    : NonNullable<H>[Name & keyof NonNullable<H>]
  : never
type HeaderPart<O, Name extends string, Option extends string> = [Header<O, Name>] extends [never]
  ? unknown
  : { [K in Option]?: Header<O, Name> | undefined }

type OptionsOf<O> = PathPart<O> &
  QueryPart<O> &
  BodyPart<O> &
  HeaderPart<O, 'If-Match', 'ifMatch'> &
  HeaderPart<O, 'If-None-Match', 'ifNoneMatch'> &
  HeaderPart<O, 'Idempotency-Key', 'idempotencyKey'> & { signal?: AbortSignal | undefined }
type Arguments<O> = object extends OptionsOf<O> ? [options?: OptionsOf<O>] : [options: OptionsOf<O>]

/**
 * Carries out a call. `etag` is the version of the object that the answer shows: send it as `ifMatch` with a
 * change. Rejects with an `AdminProblem` if the server refuses the call.
 */
type Call<M extends Method> = <P extends PathOf<M>>(
  path: P,
  ...options: Arguments<Operation<M, P>>
) => Promise<{ data: Answer<M, P>; etag: string | null }>

type PagedPathOf<M extends Method> = {
  [P in PathOf<M>]: Answer<M, P> extends { cursor: string | null } ? P : never
}[PathOf<M>]
/** Yields one page after the other, to the last. */
type Pages<M extends Method> = <P extends PagedPathOf<M>>(
  path: P,
  ...options: Arguments<Operation<M, P>>
) => AsyncGenerator<Answer<M, P>, void, void>

export type AdminClient = {
  readonly [M in Method]: Call<M>
} & { readonly getPages: Pages<'get'>; readonly postPages: Pages<'post'> }

export type AdminClientOptions = {
  /** Where `sluice admin` answers, with the path under which a proxy has it. */
  readonly baseUrl: string
  /** Absent: the calls carry no token, such as in a page with a session's cookie. */
  readonly token?: string | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
}

export function createAdminClient(options: AdminClientOptions): AdminClient

/** The server has refused a call. The message is the `detail`, which tells people what to do. */
export class AdminProblem extends Error {
  /** `about:blank`: the answer is not from `sluice admin`, but from a proxy. */
  readonly type: Problem['type'] | 'about:blank'
  readonly title: string
  readonly status: number
  readonly detail: string
  /** After how many seconds to try again, if the server says so. */
  readonly retryAfterSeconds: number | undefined
}
