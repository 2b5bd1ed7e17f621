import type { Sender } from '../../src/delivery/send/sender.ts'
import { judge } from '../../src/delivery/outcomes/verdict.ts'
import type { Book, HookPage } from './book.ts'
import { messageOf } from './messages.ts'
import type { OneThread } from './one-thread.ts'

/**
 * The time that the worker's thread needs for a request, in microseconds. A successful delivery takes 90 in
 * all (`bench -- worker`). A new TLS connection takes several times as much. A connection whose request timed
 * out is never used again.
 */
const requestUs = 75
const connectionUs = 500

export type VirtualHook = { readonly origin: string; readonly page: HookPage; readonly book: Book }

/** Returns a sender to hooks that answer by their model. The sender records all requests. */
export function createVirtualSender(hooks: readonly VirtualHook[], thread: OneThread): Sender {
  const served = new Map(hooks.map((hook) => [hook.origin, { ...hook, idleConnections: 0 }]))
  return {
    post({ origin }, body, _signature, exchange) {
      const hook = served.get(origin)
      if (hook === undefined) throw new Error(`there is no hook ${origin}`)
      const { page, book } = hook
      const message = messageOf(body)
      const isConnected = hook.idleConnections > 0
      if (isConnected) hook.idleConnections--
      const behindMs = thread.spend(isConnected ? requestUs : requestUs + connectionUs)
      const sentMs = Date.now() + behindMs
      const before = page.posted(message, sentMs - book.appendedMsOf(message))
      const { outcome, afterMs } = page.model.answer({ message, before, nowMs: sentMs })
      setTimeout(() => {
        if (outcome.kind === 'answer') hook.idleConnections++
        const isTaken = judge(outcome).kind === 'delivered'
        page.answered(message, isTaken)
        if (isTaken) book.taken(message)
        exchange.answered(outcome, outcome.kind === 'timeout')
        exchange.released()
      }, behindMs + afterMs)
    },
    async close() {},
  }
}
