import { startChild } from '../support/child.ts'

/** One view for each cookie. They take turns at the destinations. */
export type ViewsPlan = {
  readonly origin: string
  readonly cookies: readonly string[]
  readonly destinations: readonly string[]
}
export type ViewsNews = { readonly open: number; readonly bytes: number; readonly asked: number }

/** People who look at live views, in a process of its own, which counts what comes and throws it away. */
export type Views = {
  count(): Promise<ViewsNews>
  stop(): Promise<void>
}

/** Opens a live view for each cookie. Resolves when all are open. */
export async function openViews(plan: ViewsPlan): Promise<Views> {
  const child = startChild('../console/views.ts', [JSON.stringify(plan)])
  await child.next()
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's answer to this command
    count: async () => (await child.ask({ kind: 'count' })) as ViewsNews,
    stop: () => child.stop(),
  }
}
