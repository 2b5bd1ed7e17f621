import { replaceFile } from './kafkajs-file.ts'

/** What of the queue of a connection of kafkajs 2.2.4 is used. */
type RequestQueueClass = {
  readonly prototype: { readonly pending: readonly unknown[]; scheduleCheckPendingRequests(): void }
}

/**
 * After its first answer each connection of kafkajs looks a thousand times a second whether a request waits
 * to be sent, for ever (and has Node warn of a timer of minus 57 years). It looks only while one waits now.
 * Called before the first client is made.
 */
export function silenceRequestQueue(): void {
  replaceFile<RequestQueueClass>('kafkajs/src/network/requestQueue/index.js', (original) => {
    const { prototype } = original
    // oxlint-disable-next-line typescript/unbound-method -- it is called on what it is given below
    const { scheduleCheckPendingRequests } = prototype
    prototype.scheduleCheckPendingRequests = function schedule() {
      if (this.pending.length > 0) scheduleCheckPendingRequests.call(this)
    }
    return original
  })
}
