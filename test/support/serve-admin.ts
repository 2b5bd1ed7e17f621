import { onTestFinished } from 'vitest'
import { done } from '../../src/admin/problem.ts'
import { adminRoutes } from '../../src/admin/routes.ts'
import { type AdminCalls, type AdminServerOptions, createAdminServer } from '../../src/admin/server.ts'

/** Starts an admin server whose calls all answer `{}`, and returns its port. It lets nobody in. */
export async function serveAdmin(options: Partial<AdminServerOptions> = {}): Promise<number> {
  const calls: unknown = Object.fromEntries(adminRoutes.map(({ call }) => [call, async () => done({})]))
  const server = createAdminServer({
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the routes have all calls
    calls: calls as AdminCalls,
    findToken: () => undefined,
    findSession: () => undefined,
    browsers: { publicUrl: undefined, trustedProxies: [] },
    console: { bundle: () => 'no console', onViolation: () => {} },
    sees: () => true,
    requestTimeoutMs: 10_000,
    onAnswered: () => {},
    onFault(error) {
      throw error
    },
    ...options,
  })
  onTestFinished(() => server.stop(0))
  return server.listen({ host: '127.0.0.1', port: 0 })
}
