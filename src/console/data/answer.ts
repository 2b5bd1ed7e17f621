import { AdminProblem } from '../../../clients/admin/client.js'

/** What is wrong with a request, and what to do (RFC 9457). `status` is 0 if no answer came. */
export type Problem = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
}

/** The answer to a call. `version` is that of the object that was read or changed, for `If-Match`. */
export type Answer<T> =
  | { readonly ok: true; readonly value: T; readonly version: string | undefined }
  | { readonly ok: false; readonly problem: Problem }

/**
 * The time that a call may take. The server counts a replay for up to 20 s, and waits up to 5 s for a place.
 */
const limitMs = 40_000

/** Options of a call that is given up when nobody needs its answer any more, or when it takes too long. */
export function within({ signal }: { readonly signal?: AbortSignal } = {}): { readonly signal: AbortSignal } {
  const limit = AbortSignal.timeout(limitMs)
  return { signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) }
}

/** Resolves to the answer of a call of the client, or to its problem. Never rejects. */
export async function answered<T>(
  call: Promise<{ readonly data: T; readonly etag: string | null }>,
): Promise<Answer<T>> {
  try {
    const { data, etag } = await call
    return { ok: true, value: data, version: etag ?? undefined }
  } catch (error) {
    return { ok: false, problem: problemOf(error) }
  }
}

/** Tells whether a call was given up by the page, because nobody needs its answer any more. */
export function isGivenUp(problem: Problem): boolean {
  return problem.type === 'given-up'
}

function problemOf(error: unknown): Problem {
  if (error instanceof AdminProblem) {
    const { type, title, status, detail } = error
    return { type, title, status, detail }
  }
  const { name, message } = error instanceof Error ? error : { name: '', message: '' }
  if (name === 'AbortError') return { type: 'given-up', title: 'Given up', status: 0, detail: '' }
  if (name === 'TimeoutError') {
    const detail = `No answer came within ${limitMs / 1000} s. Try again, or look whether sluice admin is busy.`
    return { type: 'too-slow', title: 'No answer in time', status: 0, detail }
  }
  // The client refuses ids such as `..`, which a URL would lose.
  if (message.startsWith('path.'))
    return { type: 'bad-id', title: 'No such id', status: 404, detail: message }
  const detail = 'Look whether sluice admin runs, and whether this machine can reach it.'
  return { type: 'unreachable', title: 'Sluice does not answer', status: 0, detail }
}
