import { expect, test } from 'vitest'
import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { audiences, propertyOf } from '../support/audience-names.ts'
import { produce } from '../support/kafka.ts'
import { Random } from '../support/random.ts'
import { type ReceivedRequest, type Script, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

const kills = 10
const workers = 2
const tracks = 400
const changes = 200
const people = 40
const batch = 40
/** The requests that the destination gets within a second, from all workers together. */
const perSecond = 20
/** A worker is killed with the second batch of it that is in flight. */
const leastInFlight = 2
/** On a busy machine, a commit takes up to a second longer. */
const busyFactor = 2
/** The longest delay, in milliseconds, with which a message takes effect whose answer was an error. */
const mostLateMs = 1_500
/** So a late message takes effect before its next try. */
const rungS = 2

type Item =
  | { readonly order: string; readonly total: number }
  | {
      readonly type: string
      readonly messageId: string
      readonly userId: string
      readonly traits: Readonly<Record<string, unknown>>
    }

test('workers that are killed ten times in the middle of batches of events and audiences, some of which take effect late, lose nothing, repeat at most what is delivered in a second, and end with the last value of every user', async () => {
  const customer = createCustomer()
  const receiver = await startReceiver(customer.script)
  const scene = await setBatchScene(receiver.origin)
  const upstream = createUpstream(scene)
  let started = 0
  const start = (): Promise<SluiceProcess> =>
    startSluice({ ...scene.variables, CATALOG_WORKER: `worker-${started++}` }, { readyMs: 60_000 })
  const group = [await start(), await start()]
  try {
    const repeats: number[] = []
    for (let kill = 1; kill <= kills; kill++) {
      const [victim] = group.splice(0, 1)
      if (victim === undefined) throw new Error('no worker is left')
      const before = customer.repeats
      customer.killWith(`worker-${started - workers}`, victim.pid)
      await until(
        'it is killed',
        async () => {
          if (victim.isRunning) await upstream.send()
          return !victim.isRunning
        },
        { timeoutMs: 120_000, everyMs: 1_000 },
      )
      group.push(await start())
      await until('what it had comes from another', async () => (await scene.lag()) === 0, {
        timeoutMs: 120_000,
        everyMs: 500,
      })
      repeats.push(customer.repeats - before)
    }
    customer.recover()
    await upstream.send()
    await until('all is accepted', () => upstream.orders.every((id) => customer.orders.has(id)), {
      timeoutMs: 120_000,
    })
    await until('nothing waits', async () => (await scene.lag()) === 0, { timeoutMs: 60_000, everyMs: 500 })
    process.stdout.write(
      `${upstream.orders.length} events and ${upstream.written} changes in ${receiver.requests.length} requests, ` +
        `${customer.late} values set late, ${kills} kills with ${customer.inFlightAtKill.join(', ')} batches in flight; repeats by kill: ${repeats.join(', ')}\n`,
    )
    expect([...customer.orders].toSorted()).toEqual(upstream.orders.toSorted())
    expect(upstream.wrongAt(customer.values)).toEqual([])
    expect(customer.faults).toEqual([])
    expect(customer.mixed).toBeGreaterThan(0)
    expect(customer.late).toBeGreaterThan(0)
    expect(customer.inFlightAtKill).toHaveLength(kills)
    expect(Math.max(...repeats)).toBeLessThanOrEqual(busyFactor * perSecond * batch)
  } finally {
    await Promise.all(group.map((worker) => worker.kill()))
    scene.close()
    await receiver.stop()
  }
})

function setBatchScene(origin: string): Promise<Scene> {
  return setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'space', kind: 'audiences' }],
      destinations: [
        {
          id: 'crm',
          sources: ['shop', 'space'],
          rateLimit: { perSecond },
          batch: { maxMessages: batch, maxWait: '200ms' },
          mappings: [
            {
              condition: 'type == "track"',
              body: { order: { '@path': '$.messageId' }, total: { '@path': '$.properties.total' } },
            },
          ],
          hooks: [{ url: `${origin}/crm`, headers: { 'X-Worker': '${CATALOG_WORKER}' } }],
        },
      ],
    },
    variables: {
      ...unhurried,
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_RETRY_LADDER: `${rungS}s`,
      SLUICE_RETRY_THEN: `${rungS}s`,
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
}

/**
 * Creates a customer that takes some batches whole, some in part, and some not at all. It stores the last value that it
 * got of each user and audience. Of those that it has refused, it stores some late.
 */
function createCustomer() {
  const random = new Random(1)
  const orders = new Set<string>()
  const accepted = new Set<string>()
  const values = new Map<string, unknown>()
  const faults: string[] = []
  const inFlightAtKill: number[] = []
  const inFlight = new Map<string, number>()
  let victim: { readonly name: string; readonly pid: number } | undefined
  let isWell = false
  let repeats = 0
  let mixed = 0
  let late = 0

  function accept(item: Item): void {
    const id = 'order' in item ? item.order : item.messageId
    if (accepted.has(id)) repeats++
    accepted.add(id)
    if ('order' in item) orders.add(item.order)
    else store(item)
  }

  function store({ userId, traits }: Exclude<Item, { order: string }>): void {
    for (const [property, value] of Object.entries(traits)) values.set(`${userId} ${property}`, value)
  }

  function refuse(item: Item): void {
    if ('order' in item || random.below(2) === 0) return
    late++
    setTimeout(() => store(item), random.below(mostLateMs))
  }

  function check(items: readonly Item[]): void {
    const properties = items.flatMap((item) =>
      'order' in item ? [] : Object.keys(item.traits).map((property) => `${item.userId} ${property}`),
    )
    if (new Set(properties).size < properties.length) faults.push('a batch has two values of one property')
    if (items.length > batch) faults.push(`a batch has ${items.length} messages`)
    for (const item of items)
      if ('order' in item ? item.total !== 12.5 : item.type !== 'identify')
        faults.push(`a message has another shape: ${JSON.stringify(item)}`)
    if (properties.length > 0 && properties.length < items.length) mixed++
  }

  function note(worker: string): void {
    const now = (inFlight.get(worker) ?? 0) + 1
    inFlight.set(worker, now)
    if (victim?.name !== worker || now < leastInFlight) return
    inFlightAtKill.push(now)
    process.kill(victim.pid, 'SIGKILL')
    victim = undefined
  }

  /** Returns the status of each message of a batch. Every fourth batch fails, and of every third, one in five messages. */
  function statusesOf(items: readonly Item[], nth: number): readonly number[] {
    if (!isWell && nth % 4 === 0) return items.map(() => 503)
    return items.map((_, at) => (!isWell && nth % 3 === 0 && at % 5 === 0 ? 503 : 200))
  }

  const script: Script = ({ body, headers }: ReceivedRequest, response, nth) => {
    const worker = String(headers['x-worker'])
    const items: Item[] = JSON.parse(body.toString())
    check(items)
    const statuses = statusesOf(items, nth)
    for (const [at, item] of items.entries()) (statuses[at] === 200 ? accept : refuse)(item)
    note(worker)
    setTimeout(() => {
      inFlight.set(worker, (inFlight.get(worker) ?? 0) - 1)
      response.writeHead(207, { 'Content-Type': 'application/json' }).end(JSON.stringify(statuses))
    }, 300)
  }

  return {
    script,
    orders,
    values,
    faults,
    inFlightAtKill,
    get repeats() {
      return repeats
    },
    get mixed() {
      return mixed
    },
    get late() {
      return late
    },
    killWith(name: string, pid: number): void {
      victim = { name, pid }
    },
    recover(): void {
      isWell = true
    },
  }
}

/** Creates an upstream that writes events, and changes of audiences, of which each user has many. */
function createUpstream(scene: Scene) {
  const orders: string[] = []
  const desired = new Map<string, boolean>()
  let written = 0
  let lastMs = 0

  function newChange() {
    lastMs = Math.max(Date.now(), lastMs + 1)
    const at = written++
    const userId = `user-${at % people}`
    const audience = audiences[Math.floor(at / people) % audiences.length] ?? ''
    const key = `${userId} ${propertyOf(audience)}`
    const member = desired.get(key) !== true
    desired.set(key, member)
    return {
      key: userId,
      headers: { 'source-id': 'space' },
      value: JSON.stringify({
        type: 'membership',
        audienceId: audience,
        audienceName: audience,
        audienceKey: null,
        member,
        userId,
        changedAt: new Date(lastMs).toISOString(),
      }),
    }
  }

  return {
    orders,
    get written() {
      return written
    },
    async send(): Promise<void> {
      const ids = Array.from({ length: tracks }, (_, at) => `order-${orders.length + at}`)
      orders.push(...ids)
      await Promise.all([
        scene.send('shop', ids),
        produce(`${scene.prefix}audience-changes`, Array.from({ length: changes }, newChange)),
      ])
    },
    /** Returns each user and audience of which the customer has another value than the last one. */
    wrongAt: (values: ReadonlyMap<string, unknown>) =>
      [...desired].filter(([key, member]) => (values.get(key) ?? false) !== member),
  }
}
