import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Approach, Browsers, Caller } from './browser.ts'

/** Why a sign-in at the provider did not succeed. The page to sign in has a text for each. */
export type SignInRefusal = 'denied' | 'stale' | 'no_right' | 'failed' | 'busy' | 'unavailable'

/** The end of a sign-in. `headers`: they make the browser keep the session. */
export type SignInEnd =
  | { readonly ok: true; readonly headers: Readonly<Record<string, string>>; readonly to: string }
  | { readonly ok: false; readonly why: SignInRefusal }

/** Signs browsers in at an OpenID provider. */
export type BrowserSignIn = {
  /** Returns where a browser goes, and what it keeps meanwhile. `to`: the page to show afterwards. */
  begin(to: string, caller: Caller): Promise<{ url: string; kept: string } | { why: SignInRefusal }>
  finish(query: URLSearchParams, kept: string | undefined, caller: Caller): Promise<SignInEnd>
}

export type SignInPagesOptions = {
  readonly browsers: Browsers
  /** `undefined`: there is no provider. */
  readonly provider: BrowserSignIn | undefined
  readonly onFault: (error: unknown) => void
}

/** Where browsers begin, and where the provider sends them back to, below the pages of the console. */
export const signInPaths = { start: 'oidc/start', callback: 'oidc/callback' } as const

/**
 * Adds what browsers need before they are signed in. Browsers come here by links and from the provider, so
 * the answers are redirects.
 */
export function addSignIn(
  server: FastifyInstance,
  { browsers, provider, onFault }: SignInPagesOptions,
  isAdmitted: (request: FastifyRequest, reply: FastifyReply) => boolean,
): void {
  const home = `${browsers.prefix}/console/`
  const refused = (reply: FastifyReply, why: SignInRefusal) => redirect(reply, `${home}#refused=${why}`)

  server.get('/console/sign-in.json', (request, reply) =>
    isAdmitted(request, reply)
      ? reply
          .headers({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' })
          .send({ provider: provider === undefined ? null : signInPaths.start })
      : reply.code(503).send(),
  )
  if (provider === undefined) return
  server.get(`/console/${signInPaths.start}`, async (request, reply) => {
    if (!isAdmitted(request, reply)) return refused(reply, 'busy')
    const approach = approachOf(request)
    try {
      const begun = await provider.begin(pageIn(queryOf(request)), browsers.callerOf(approach))
      if ('why' in begun) return refused(reply, begun.why)
      return redirect(reply, begun.url, { 'set-cookie': [browsers.keepFlow(approach, begun.kept)] })
    } catch (error) {
      onFault(error)
      return refused(reply, 'failed')
    }
  })
  server.get(`/console/${signInPaths.callback}`, async (request, reply) => {
    if (!isAdmitted(request, reply)) return refused(reply, 'busy')
    const approach = approachOf(request)
    try {
      const caller = browsers.callerOf(approach)
      const end = await provider.finish(queryOf(request), browsers.flowOf(approach), caller)
      const forget = browsers.keepFlow(approach, undefined)
      if (!end.ok) return refused(reply.header('set-cookie', forget), end.why)
      const cookies = [end.headers['set-cookie'] ?? '', forget]
      return redirect(reply, `${home}${pageIn(new URLSearchParams({ to: end.to }))}`, {
        'set-cookie': cookies,
      })
    } catch (error) {
      onFault(error)
      return refused(reply, 'failed')
    }
  })
}

function redirect(
  reply: FastifyReply,
  url: string,
  headers: Readonly<Record<string, string[]>> = {},
): FastifyReply {
  return reply
    .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', ...headers })
    .redirect(url, 303)
}

/** Returns the page of the console that a query names: no other address can be put there. */
function pageIn(query: URLSearchParams): string {
  const to = query.get('to') ?? ''
  return /^[a-z-]{1,20}(\?[\w.~%!$&'()*+,;=:@/-]{0,500})?$/.test(to) ? to : ''
}

function queryOf({ url }: FastifyRequest): URLSearchParams {
  return new URL(url, 'http://localhost').searchParams
}

function approachOf({ method, headers, raw: { socket } }: FastifyRequest): Approach {
  return { method, headers, socket }
}
