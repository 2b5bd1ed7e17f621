import { randomBytes } from 'node:crypto'
import { setInterval as everyTick } from 'node:timers/promises'
import { partitionOf } from '../../src/message/partitioner.ts'
import type { AdminTokens } from '../support/admin.ts'
import { produce } from '../support/kafka.ts'
import { basic, post } from '../support/post.ts'
import { now } from '../support/strict-clock.ts'
import { until } from '../support/until.ts'

type Origins = { readonly gateway: string; readonly admin: () => string }

/** The partitions of `audience-changes` (SLUICE_TOPICS_PARTITIONS). */
const partitions = 6
const tickMs = 500
/** Messages of `shop` at each tick. */
const perTick = 10

/** Returns the write key of a source. */
export function key(source: string): string {
  return `key-of-${source}`
}

/**
 * What clients and upstream services send while the dashboards are drawn: 20 messages a second of the source
 * `shop`, and a few of others. A few of them are repeats, can't be delivered, or have no destination.
 */
export class DashboardTraffic {
  readonly #prefix: string
  readonly #tokens: AdminTokens
  readonly #origins: Origins
  readonly #run = randomBytes(4).toString('hex')
  readonly #ending = new AbortController()
  #sending: Promise<void> = Promise.resolve()
  #messages = 0

  constructor(prefix: string, tokens: AdminTokens, origins: Origins) {
    this.#prefix = prefix
    this.#tokens = tokens
    this.#origins = origins
  }

  start(): void {
    this.#sending = this.#sendAtEachTick()
    // `stop` reports this error. Until then, the error must not end the test's process.
    this.#sending.catch(() => undefined)
  }

  /** Rejects if something could not be sent. */
  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#sending
  }

  /** Writes a whole sync of an audience whose members are the users `from` to `to`, without `to`. */
  async sync(from: number, to: number): Promise<void> {
    const at = now()
    const users = Array.from({ length: to - from }, (_, index) => `user-${from + index}`)
    const records = Array.from({ length: partitions }, (_, partition) => ({
      key: null,
      partition,
      value: JSON.stringify({
        type: 'sync',
        audienceId: 'big-spenders',
        audienceName: 'Big Spenders',
        syncId: `sync ${at}`,
        snapshotAt: at,
        part: 1,
        parts: 1,
        userIds: users.filter((user) => partitionOf(user, partitions) === partition),
      }),
      headers: { 'source-id': 'space' },
    }))
    await produce(`${this.#prefix}audience-changes`, records)
  }

  /** Replays all dead letters of a destination, ten a second. */
  async replay(destination: string): Promise<void> {
    const body = { selection: { of: 'dead-letters', destination }, perSecond: 10 }
    const answer = await post(`${this.#origins.admin()}/v1/replays`, body, {
      authorization: `Bearer ${this.#tokens.operate}`,
    })
    if (answer.status >= 300) throw new Error(`the replay was refused: ${answer.status} ${answer.text}`)
  }

  async #sendAtEachTick(): Promise<void> {
    let tick = 0
    const ticks = everyTick(tickMs, undefined, { signal: this.#ending.signal })
    try {
      for await (const _ of ticks) await this.#sendAt(tick++)
    } catch (error) {
      if (!this.#ending.signal.aborted) throw error
    }
  }

  async #sendAt(tick: number): Promise<void> {
    const shop = Array.from({ length: perTick }, () => this.#message())
    // One in forty is sent twice.
    if (tick % 4 === 0) shop.push(shop[0] ?? {})
    await this.#send('shop', shop)
    await this.#send(
      'app',
      Array.from({ length: 4 }, () => this.#message()),
    )
    if (tick % 4 === 1) await this.#send('returns', [this.#message()])
    if (tick % 8 === 3) await this.#send('old-shop', [this.#message()])
    if (tick % 4 === 2) await this.#change((tick - 2) / 4)
    if (tick % 6 === 0) await this.#askAdmin({ isRight: tick % 60 > 0 })
    if (tick % 30 === 5) await this.#sendWhatGoesNowhere()
  }

  #message(): object {
    const number = this.#messages++
    const [type, name] = kinds[number % kinds.length] ?? kinds[0]
    return {
      type,
      ...name,
      messageId: `${this.#run}-${number}`,
      userId: `user-${number % 500}`,
      properties: { order: number, total: (number * 7) % 100 },
    }
  }

  /** Sends messages of a source. While the gateway starts anew, tries again, as clients do. */
  async #send(source: string, batch: readonly object[]): Promise<void> {
    await until(`the gateway has taken messages of ${source}`, async () => {
      const answer = await post(`${this.#origins.gateway}/v1/batch`, { batch }, basic(key(source)))
      return answer.status === 200
    })
  }

  /** A user enters an audience, and another one leaves it. */
  async #change(nth: number): Promise<void> {
    const entered = [0, 1].map((index) => change(`new-${2 * nth + index}`, true))
    const left = nth < 20 ? [] : [change(`new-${nth - 20}`, false)]
    await produce(`${this.#prefix}audience-changes`, [...entered, ...left])
  }

  /** Asks the admin API and signs in, with a right or with a wrong token. */
  async #askAdmin({ isRight }: { isRight: boolean }): Promise<void> {
    const token = isRight ? this.#tokens.read : 'sluice_wrong'
    const url = (path: string) => `${this.#origins.admin()}/v1/${path}`
    try {
      await fetch(url('replays'), { headers: { authorization: `Bearer ${token}` } })
      await post(url('session'), { token })
    } catch {
      // It starts anew.
    }
  }

  async #sendWhatGoesNowhere(): Promise<void> {
    await this.#send('shop', [{ type: 'track', event: 5, userId: 'u' }])
    const records = ['nobody', 'unheard'].map((source) => ({
      key: 'u',
      value: JSON.stringify({
        type: 'track',
        messageId: `${this.#run}-${source}-${now()}`,
        userId: 'u',
        event: 'Seen',
      }),
      headers: { 'source-id': source },
    }))
    await produce(`${this.#prefix}events`, records)
  }
}

/** Returns a record of `audience-changes`. */
function change(userId: string, member: boolean) {
  return {
    key: userId,
    value: JSON.stringify({
      type: 'membership',
      audienceId: 'new-users',
      audienceName: 'New Users',
      userId,
      member,
      changedAt: now(),
    }),
    headers: { 'source-id': 'space' },
  }
}

const kinds: readonly [readonly [string, object], ...(readonly [string, object])[]] = [
  ['track', { event: 'Order Completed' }],
  ['track', { event: 'Product Viewed' }],
  ['track', { event: 'Product Added' }],
  ['page', { name: 'Home' }],
  ['identify', { traits: { plan: 'free' } }],
]
