import { setTimeout as passTime } from 'node:timers/promises'
import { basic, post, type Reply } from '../test/support/post.ts'
import { serverKeyOf, type SourceId, writeKeyOf } from './fleet.ts'
import { type Ledger, messageOf } from './ledger.ts'

/** Calls the gateway as clients do. */
export type Gateway = {
  /**
   * Sends the same request again until the gateway answers 200. `sentMs` is the time when the answered
   * request began, in epoch milliseconds. Rejects at a 4xx answer that every repetition would get too.
   */
  call(path: string, body: object, headers: Record<string, string>): Promise<{ sentMs: number; reply: Reply }>
}

const answerWithinMs = 10_000
const againMs = 250

export function createGatewayCaller(origin: string, ledger: Ledger): Gateway {
  return {
    async call(path, body, headers) {
      for (;;) {
        const sentMs = Date.now()
        const reply = await post(
          `${origin}${path}`,
          body,
          headers,
          AbortSignal.timeout(answerWithinMs),
        ).catch(() => undefined)
        ledger.answered(reply?.status ?? 0)
        if (reply?.status === 200) return { sentMs, reply }
        if (reply !== undefined && isFinal(reply)) throw new Error(`${path}: ${reply.status} ${reply.text}`)
        ledger.repeatedSends++
        await passTime(againMs)
      }
    },
  }
}

/** Returns true if the gateway would answer the same request in the same way again. */
function isFinal({ status }: Reply): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429
}

export function bearer(source: SourceId): Record<string, string> {
  return { authorization: `Bearer ${serverKeyOf(source)}` }
}

const clientCount = 4
const usersOfClient = 5
const everyMs = 500

/**
 * Runs clients that each send one batch after the other until the signal. No two clients send messages of the
 * same user. The messages of a user have rising numbers, and must be in this order in Kafka.
 */
export async function sendBatches({
  gateway,
  ledger,
  perSecond,
  signal,
}: {
  gateway: Gateway
  ledger: Ledger
  perSecond: number
  signal: AbortSignal
}): Promise<void> {
  const atATime = Math.max(1, Math.round((perSecond / clientCount) * (everyMs / 1_000)))
  async function run(client: number): Promise<void> {
    for (let first = 0; !signal.aborted; first += atATime) {
      const startedMs = performance.now()
      const numbers = Array.from({ length: atATime }, (_, index) => first + index)
      const batch = numbers.map((number) =>
        messageOf(webIdOf(client, number), webUserOf(client, number), number),
      )
      const { sentMs, reply } = await gateway.call('/v1/batch', { batch }, basic(writeKeyOf('web')))
      const { rejected } = reply.body
      if (rejected !== undefined) ledger.leftOut.push(JSON.stringify(rejected))
      for (const number of numbers)
        ledger.acknowledged.push({ id: webIdOf(client, number), source: 'web', sentMs })
      await passTime(Math.max(0, everyMs - (performance.now() - startedMs)))
    }
  }
  await Promise.all(Array.from({ length: clientCount }, (_, client) => run(client)))
}

function webIdOf(client: number, number: number): string {
  return `web-${client}-${number}`
}

function webUserOf(client: number, number: number): string {
  return `client-${client}-user-${number % usersOfClient}`
}

/**
 * Returns the user of a message of the source `web`, and the number of the message at its client. Returns
 * `undefined` for an id of another source.
 */
export function readWebId(id: string): { user: string; number: number } | undefined {
  const [, client, number] = /^web-(\d+)-(\d+)$/.exec(id) ?? []
  return client === undefined
    ? undefined
    : { user: webUserOf(Number(client), Number(number)), number: Number(number) }
}
