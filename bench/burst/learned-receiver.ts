import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/** A receiver of this process. It counts the requests, and the distinct messages that it answered in time. */
export type LoadReceiver = {
  readonly url: string
  readonly requests: number
  /** When each message was first answered, in milliseconds of `performance.now()`. */
  readonly answeredAtMs: readonly number[]
  stop(): Promise<void>
}

/**
 * Starts a receiver that needs `ms` for each request. With `isSerial` it has one worker, and does all work that
 * it got, even if nobody waits for the answer any more.
 */
export async function startLoadReceiver(ms: number, isSerial: boolean): Promise<LoadReceiver> {
  const answeredAtMs: number[] = []
  const seen = new Set<string>()
  let requests = 0
  let freeAtMs = 0
  const server = createServer((request, response) => {
    requests++
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    const nowMs = performance.now()
    freeAtMs = Math.max(nowMs, freeAtMs) + ms
    setTimeout(
      () => {
        if (response.destroyed) return
        const id = /"messageId":"([^"]*)"/.exec(Buffer.concat(chunks).toString())?.[1] ?? ''
        if (!seen.has(id)) answeredAtMs.push(performance.now())
        seen.add(id)
        response.end()
      },
      isSerial ? freeAtMs - nowMs : ms,
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server on TCP
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    get requests() {
      return requests
    },
    answeredAtMs,
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
