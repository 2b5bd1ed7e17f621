import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { BenchmarkFailure } from '../support/failure.ts'
import type { Blocked } from './blocks.ts'

export type FollowerCommand = { readonly kind: 'blocked' }
export type FollowerNews =
  | { readonly kind: 'ready' }
  | { readonly kind: 'version'; readonly version: string }
  | (BlockedFollower & { readonly kind: 'blocked' })

/** The longest blocks of the event loop, and how many destinations the catalog has. */
type BlockedFollower = Blocked & { readonly destinations: number }

/** A process that follows the catalog. It ends with this process. */
export type Follower = {
  /** The number of the last change that it uses, from the version `r…`. */
  readonly revision: number
  /** Asks for the longest block since the last call. */
  blocked(): Promise<BlockedFollower>
  stop(): Promise<void>
}

/** Starts a follower. Resolves once it has read the topic. `variables`: its settings. */
export async function startFollower(
  variables: Readonly<Record<string, string>>,
  onVersion: () => void,
): Promise<Follower> {
  const script = join(import.meta.dirname, 'follower.ts')
  const child = fork(script, [JSON.stringify(variables)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  const ready = Promise.withResolvers<void>()
  let blocked = Promise.withResolvers<BlockedFollower>()
  let revision = 0
  child.on('message', (news: FollowerNews) => {
    if (news.kind === 'ready') ready.resolve()
    else if (news.kind === 'blocked') blocked.resolve(news)
    else {
      revision = Number(news.version.slice(1))
      onVersion()
    }
  })
  void exited.then(([code]: unknown[]) => {
    ready.reject(new BenchmarkFailure(`a follower ended with code ${String(code)}`))
  })
  await ready.promise
  return {
    get revision() {
      return revision
    },
    async blocked() {
      blocked = Promise.withResolvers()
      child.send({ kind: 'blocked' } satisfies FollowerCommand)
      return blocked.promise
    },
    async stop() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}
