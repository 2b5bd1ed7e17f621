import { connect } from 'node:http2'
import { Client, type Dispatcher, Pool } from 'undici'
import { createAddressPolicy } from '../../src/address/policy.ts'
import { createSender, type Target } from '../../src/delivery/send/sender.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/** Posts `count` bodies, with at most `inFlight` requests in flight. Resolves when all are answered. */
export type Deliver = (count: number) => Promise<void>
export type Sending = { deliver: Deliver; close(): Promise<void> }

export const inFlight = 16
const body = Buffer.from(JSON.stringify({ type: 'track', properties: { text: 'x'.repeat(960) } }))
const signature = '2ef7bde608ce5404e97d5f042f95f89f1c232871'
const headers = ['User-Agent', 'Sluice/1.0', 'Content-Type', 'application/json']
const signatureHeaders = ['X-Signature', signature]

/**
 * Creates a `Deliver` that keeps `inFlight` requests in flight. `post` sends one request and calls back
 * with the status of the answer. `Deliver` rejects if a status isn't 200.
 */
function deliverBy(post: (done: (status: number) => void) => void): Deliver {
  return (count) =>
    new Promise((resolve, reject) => {
      let begun = 0
      let ended = 0
      const next = (): void => {
        if (begun === count) return
        begun++
        post((status) => {
          ended++
          if (status !== 200) reject(new BenchmarkFailure(`an answer was ${status}`))
          else if (ended === count) resolve()
          else next()
        })
      }
      for (let slot = 0; slot < inFlight; slot++) next()
    })
}

/** Returns a `Sending` that uses Sluice's sender, as a worker does. */
export function sluice(origin: string): Sending {
  const policy = createAddressPolicy(['127.0.0.0/8'])
  const sender = createSender({ policy, timeoutMs: 60_000, poolIdleMs: 30_000 })
  const target: Target = { origin, path: '/hook', headers }
  const deliver = deliverBy((done) => {
    let status = 0
    sender.post(target, body, signatureHeaders, {
      answered(outcome) {
        status = outcome.kind === 'answer' ? outcome.status : -1
      },
      released: () => done(status),
    })
  })
  return { deliver, close: () => sender.close() }
}

/**
 * Returns a `Sending` that uses only undici: over HTTP/1.1 with up to `inFlight` connections, or over one
 * HTTP/2 connection.
 */
export function undici(origin: string, { isH2 }: { isH2: boolean }): Sending {
  const dispatcher: Dispatcher = isH2
    ? new Client(origin, { allowH2: true, pipelining: inFlight })
    : new Pool(origin, { allowH2: false, connections: inFlight, pipelining: 1 })
  const request: Dispatcher.DispatchOptions = {
    path: '/hook',
    method: 'POST',
    headers: [...headers, ...signatureHeaders],
    body,
  }
  const deliver = deliverBy((done) => {
    let status = 0
    dispatcher.dispatch(request, {
      onRequestStart() {},
      onResponseStart(_controller, code) {
        status = code
      },
      onResponseData() {},
      onResponseEnd: () => done(status),
      onResponseError: () => done(-1),
    })
  })
  return { deliver, close: () => dispatcher.close() }
}

/** Returns a `Sending` that uses Node's own HTTP/2 client, over one connection. */
export function nodeH2(origin: string): Sending {
  const session = connect(origin)
  const fields = {
    ':method': 'POST',
    ':path': '/hook',
    'user-agent': 'Sluice/1.0',
    'content-type': 'application/json',
    'content-length': String(body.length),
    'x-signature': signature,
  }
  const deliver = deliverBy((done) => {
    const stream = session.request(fields)
    let status = -1
    stream.on('response', (answer) => {
      status = answer[':status'] ?? -1
    })
    stream.on('error', () => undefined)
    stream.on('close', () => done(status))
    stream.resume()
    stream.end(body)
  })
  return {
    deliver,
    close: () => new Promise((resolve) => session.close(resolve)),
  }
}
