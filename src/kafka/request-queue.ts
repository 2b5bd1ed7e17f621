import { replaceFile } from './kafkajs-file.ts'

/** The part of a connection's queue in kafkajs 2.2.4 that is used here. */
type RequestQueueClass = {
  readonly prototype: { readonly pending: readonly unknown[]; scheduleCheckPendingRequests(): void }
}

/**
 * Changes kafkajs so that a connection polls its queue only while a request waits to be sent. Without this
 * change, each connection polls its queue a thousand times a second, forever, from its first answer on. Node
 * then also warns of a timer with a negative time (minus 57 years). Call this before making the first client.
 */
export function silenceRequestQueue(): void {
  replaceFile<RequestQueueClass>('kafkajs/src/network/requestQueue/index.js', (original) => {
    const { prototype } = original
    // oxlint-disable-next-line typescript/unbound-method -- `schedule` below calls it with a `this`
    const { scheduleCheckPendingRequests } = prototype
    prototype.scheduleCheckPendingRequests = function schedule() {
      if (this.pending.length > 0) scheduleCheckPendingRequests.call(this)
    }
    return original
  })
}
