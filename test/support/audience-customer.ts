import { isAudience } from './audience-names.ts'
import type { Random } from './random.ts'
import type { Script } from './receiver.ts'

/**
 * The behaviours of the customer. Each request gets one of them at random. Five of the twelve are right, and
 * seven are wrong.
 */
export const foulBehaviours = [
  'well',
  'well',
  'well',
  'well',
  'well',
  'refuses',
  'fails',
  'fails but acts',
  'fails and acts late',
  'resets and acts late',
  'hangs',
  'hangs and acts late',
] as const

export type CustomerBehaviour = (typeof foulBehaviours)[number]

/**
 * The longest delay of a late action, in milliseconds. If a delivery waits at least 2 s for its next try, the
 * late action of a try ends before the next try.
 */
const mostLateMs = 1_500

/**
 * Creates a customer's server with one hook. The server stores the values that it receives. Depending on the
 * behaviour of a request, it stores them late or not at all, or stores them and answers with an error. An
 * older request may arrive up to `mostBehindMs` milliseconds after a `delete`, because it may have begun
 * before the `delete` came.
 */
export function createAudienceCustomer({
  random,
  behaviours = foulBehaviours,
  mostBehindMs = 1_000,
}: {
  random: Random
  behaviours?: readonly CustomerBehaviour[]
  mostBehindMs?: number
}) {
  const values = new Map<string, Map<string, Held>>()
  const deletes = new Map<string, { upToMs: number; sinceMs: number }>()
  const sentTooLate: string[] = []
  const history = new Map<string, string[]>()
  let isWell = false
  let late = 0

  function note(userId: string, line: string): void {
    const lines = history.get(userId) ?? []
    history.set(userId, lines)
    lines.push(`${timeOfDay()} ${line}`)
  }

  function take({ type, userId, timestamp, traits: given }: Body): void {
    note(userId, `applied: ${type} of ${timestamp} ${JSON.stringify(given ?? {})}`)
    const atMs = Date.parse(timestamp)
    const held = values.get(userId) ?? new Map<string, Held>()
    values.set(userId, held)
    if (type === 'delete') {
      for (const [property, { atMs: since }] of held) if (since <= atMs) held.delete(property)
      return
    }
    for (const [property, value] of Object.entries(given ?? {})) held.set(property, { value, atMs })
  }

  function hear({ type, userId, timestamp }: Body): void {
    const atMs = Date.parse(timestamp)
    const before = deletes.get(userId)
    if (type === 'delete') {
      if (before === undefined || before.upToMs < atMs)
        deletes.set(userId, { upToMs: atMs, sinceMs: performance.now() })
    } else if (before !== undefined && atMs <= before.upToMs) {
      const behindMs = performance.now() - before.sinceMs
      if (behindMs > mostBehindMs)
        sentTooLate.push(
          `${userId} of ${before.upToMs - atMs} ms before its deletion, ${behindMs} ms after its delete`,
        )
    }
  }

  const script: Script = ({ body: bytes, headers }, response) => {
    const body: Body = JSON.parse(String(bytes))
    hear(body)
    const apply = (): void => take(body)
    const applyLate = (): void => {
      late++
      setTimeout(apply, random.below(mostLateMs))
    }
    const behaviour = isWell ? 'well' : random.pick(behaviours)
    const worker = String(headers['x-worker'] ?? 'a worker')
    note(
      body.userId,
      `${worker} sent ${body.type} of ${body.timestamp} ${JSON.stringify(body.traits ?? {})}: ${behaviour}`,
    )
    switch (behaviour) {
      case 'refuses':
        response.writeHead(429).end()
        return
      case 'fails':
        response.writeHead(503).end()
        return
      case 'fails but acts':
        apply()
        response.writeHead(500).end()
        return
      case 'fails and acts late':
        applyLate()
        response.writeHead(500).end()
        return
      case 'resets and acts late':
        applyLate()
        response.destroy()
        return
      case 'hangs':
        return
      case 'hangs and acts late':
        applyLate()
        return
      case 'well':
        apply()
        response.writeHead(200).end()
    }
  }

  return {
    script,
    get late() {
      return late
    },
    recover() {
      isWell = true
    },
    /**
     * The requests that came too late, one line for each. Such a request is older than a `delete` of its
     * user, and arrived more than `mostBehindMs` after this `delete`.
     */
    sentTooLate,
    /**
     * Returns the user and the property of each value that the customer should no longer hold. Such a value
     * isn't newer than the user's deletion.
     */
    heldTooLong: () =>
      [...values].flatMap(([user, held]) =>
        [...held]
          .filter(([, { atMs }]) => atMs <= (deletes.get(user)?.upToMs ?? -1))
          .map(([property]) => `${user} ${property}`),
      ),
    historyOf: (user: string): readonly string[] => history.get(user) ?? [],
    /**
     * Returns how long ago the user's newest `delete` first arrived, in milliseconds. Returns `undefined` if
     * no `delete` for `atMs` or a later time has arrived.
     */
    msSinceDelete(user: string, atMs: number): number | undefined {
      const seen = deletes.get(user)
      return seen === undefined || seen.upToMs < atMs ? undefined : performance.now() - seen.sinceMs
    },
    /**
     * Returns the value that the customer holds. Returns `false` for an audience if the customer holds no
     * value, because a user without a value isn't in the audience.
     */
    valueOf(user: string, property: string): unknown {
      const held = values.get(user)?.get(property)
      return held === undefined && isAudience(property) ? false : held?.value
    },
  }
}

export type AudienceCustomer = ReturnType<typeof createAudienceCustomer>
type Held = { value: unknown; atMs: number }
type Body = { type: string; userId: string; timestamp: string; traits?: object }

/** Returns the present time of day in UTC, as `hh:mm:ss.mmmZ`. */
export function timeOfDay(): string {
  return new Date().toISOString().slice('yyyy-mm-ddT'.length)
}
