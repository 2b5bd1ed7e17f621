import type { SourceId } from './script.ts'

/** A message or record that an upstream service sends, through the gateway or directly to the topic. */
export type PlannedRecord = Sending & {
  /** The time of sending, in milliseconds from the start of the demo's production. */
  atMs: number
  fate: Fate
}

type Sending = ToGateway | ToTopic

/** A message that Segment's client sends to the gateway. */
type ToGateway = { way: 'gateway'; sourceId: SourceId; message: TrackedMessage }

/** A record that the service writes to the events topic itself. */
export type ToTopic = {
  way: 'topic'
  /** The header `source-id`. `undefined`: the record has no such header. */
  sourceId: string | undefined
  key: string
  value: string
}

/** The result that the demo expects for a planned record. */
export type Fate =
  | { kind: 'routed'; sourceId: SourceId; message: PlannedMessage }
  /** No destination gets the message, because its `integrations` object switches webhooks off. */
  | { kind: 'filtered'; message: PlannedMessage }
  /**
   * The record becomes a dead letter with this reason, because it can't be read or its source isn't known.
   */
  | { kind: 'refused'; reason: RefusalReason }

export type PlannedMessage = {
  messageId: string
  type: Kind
  userId: string
  timestamp: string
  [field: string]: unknown
}

export type RefusalReason = 'not_json' | 'no_user_anon_id' | 'no_source' | 'unknown_source'

export const kinds = ['page', 'screen', 'identify', 'track', 'alias', 'group', 'delete'] as const
export type Kind = (typeof kinds)[number]

/** A message of a type that Segment's client can send. The client has no call for a `delete`. */
export type TrackedMessage = PlannedMessage & { type: Exclude<Kind, 'delete'> }

/** The number of messages of each kind that a source sends. */
const volumes: Readonly<Record<SourceId, readonly (readonly [kind: Kind, count: number])[]>> = {
  website: [
    ['page', 70],
    ['track', 80],
    ['identify', 25],
    ['group', 12],
    ['alias', 8],
    ['delete', 5],
  ],
  'mobile-app': [
    ['screen', 40],
    ['track', 30],
    ['identify', 10],
  ],
  billing: [
    ['track', 12],
    ['identify', 4],
    ['group', 4],
  ],
}
const filteredCount = 6
const refusedCounts: readonly (readonly [reason: RefusalReason, count: number])[] = [
  ['not_json', 5],
  ['unknown_source', 3],
  ['no_source', 2],
  ['no_user_anon_id', 2],
]
const users = 40

/**
 * Returns all records that the upstream services send within `durationMs`, in order of time. `startMs` is the
 * time of the first record, in epoch milliseconds.
 */
export function planRecords(startMs: number, durationMs: number): PlannedRecord[] {
  const make = (share: number, messageId: string, kind: Kind, index: number): Made => {
    const atMs = share * durationMs
    return { atMs, message: makeMessage(kind, messageId, index, startMs + atMs) }
  }
  const records = [
    ...planSource('website', make),
    ...planSource('mobile-app', make),
    ...planSource('billing', make),
    ...planFiltered(make),
    ...planRefused(make),
  ]
  return records.sort((a, b) => a.atMs - b.atMs)
}

/**
 * Returns a message for `--stay`, to be sent now. The index decides which service sends it: they take turns.
 */
export function oneMore(index: number): PlannedRecord {
  const sourceId = index % 10 === 9 ? 'billing' : index % 2 === 0 ? 'website' : 'mobile-app'
  const mixed = mixKinds(volumes[sourceId])
  const kind = mixed[Math.floor(index / 2) % mixed.length] ?? 'track'
  const message = makeMessage(kind, `stay-${index + 1}`, index, Date.now())
  return routed(sourceId, { atMs: 0, message })
}

type Made = { atMs: number; message: PlannedMessage }
/** Makes a message. `share` is its time as a part of the whole duration, 0 to 1. */
type Make = (share: number, messageId: string, kind: Kind, index: number) => Made

function planSource(sourceId: SourceId, make: Make): PlannedRecord[] {
  const mixed = mixKinds(volumes[sourceId])
  return mixed.map((kind, index) =>
    routed(sourceId, make(index / mixed.length, `${sourceId}-${index + 1}`, kind, index)),
  )
}

function planFiltered(make: Make): PlannedRecord[] {
  return Array.from({ length: filteredCount }, (_, index) => {
    const made = make((index + 0.5) / filteredCount, `filtered-${index + 1}`, 'track', index)
    const integrations = index % 2 === 0 ? { All: false } : { Webhooks: false }
    const message = { ...made.message, integrations }
    return { ...sendingOf('website', message), atMs: made.atMs, fate: { kind: 'filtered', message } }
  })
}

function planRefused(make: Make): PlannedRecord[] {
  const reasons = refusedCounts.flatMap(([reason, count]) => Array.from({ length: count }, () => reason))
  return reasons.map((reason, index) => {
    const made = make((index + 0.3) / reasons.length, `faulty-${index + 1}`, 'track', index)
    return { ...spoil(reason, made.message), atMs: made.atMs, fate: { kind: 'refused', reason } }
  })
}

/**
 * Returns a record that must become a dead letter with this reason. The record is written to the topic
 * directly, because clients and the gateway refuse such messages.
 */
function spoil(reason: RefusalReason, message: PlannedMessage): ToTopic {
  const sound = recordOf('website', message)
  switch (reason) {
    case 'not_json':
      return { ...sound, value: sound.value.slice(0, 40) }
    case 'no_user_anon_id':
      return { ...sound, value: JSON.stringify({ ...message, userId: undefined }) }
    case 'no_source':
      return { ...sound, sourceId: undefined }
    case 'unknown_source':
      return { ...sound, sourceId: 'nobody-knows-me' }
  }
}

function routed(sourceId: SourceId, { atMs, message }: Made): PlannedRecord {
  return { ...sendingOf(sourceId, message), atMs, fate: { kind: 'routed', sourceId, message } }
}

/**
 * Chooses how a message is sent. `billing` writes all of its messages to Kafka itself. The other sources
 * write only `delete` messages to Kafka themselves, because Segment's client has no call for them.
 */
function sendingOf(sourceId: SourceId, message: PlannedMessage): Sending {
  return sourceId === 'billing' || !isTracked(message)
    ? recordOf(sourceId, message)
    : { way: 'gateway', sourceId, message }
}

function isTracked(message: PlannedMessage): message is TrackedMessage {
  return message.type !== 'delete'
}

function recordOf(sourceId: SourceId, message: PlannedMessage): ToTopic {
  return { way: 'topic', sourceId, key: message.userId, value: JSON.stringify(message) }
}

/** Returns the kinds of all messages of a source, in an order that spreads each kind evenly over time. */
function mixKinds(volume: readonly (readonly [kind: Kind, count: number])[]): Kind[] {
  const placed = volume.flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, index) => ({ kind, share: (index + 0.5) / count })),
  )
  return placed.sort((a, b) => a.share - b.share).map(({ kind }) => kind)
}

// Some names aren't ASCII. A signature covers bytes, so a wrong encoding would make it wrong.
const names = ['Zoë Åström', 'José Núñez', '李小龙', 'Ada Lovelace', 'Grace Hopper']
const products = ['Espresso cup ☕', 'Tea pot', 'Kettle', 'Grinder "Pro"']

function makeMessage(type: Kind, messageId: string, index: number, timestampMs: number): PlannedMessage {
  const userId = `user-${(index % users) + 1}`
  const timestamp = new Date(timestampMs).toISOString()
  return { type, messageId, userId, timestamp, ...contentOf(type, userId, index) }
}

/** Returns the fields of a message that only its kind has. They vary with the index. */
export function contentOf(type: Kind, userId: string, index: number): Record<string, unknown> {
  const product = products[index % products.length]
  switch (type) {
    case 'page':
      return {
        properties: {
          path: `/products/${index}`,
          referrer: 'https://search.example.com/',
          title: product,
          url: `https://shop.example.com/products/${index}`,
        },
      }
    case 'screen':
      return {
        name: 'Basket',
        context: {
          device: { model: 'Pixel 9', type: 'android' },
          os: { name: 'Android', version: '16' },
          app: { build: '3.0.1.545', name: 'Shop', version: '3.0.1' },
        },
      }
    case 'identify':
      return { traits: { name: names[index % names.length], plan: index % 3 === 0 ? 'pro' : 'free' } }
    case 'track':
      return { event: 'Order Completed', properties: { product, price: 19.5 + index, currency: 'EUR' } }
    case 'alias':
      return { previousId: `visitor-of-${userId}` }
    case 'group':
      return { groupId: `company-${index % 7}`, traits: { employees: 10 * index, city: 'Zürich' } }
    case 'delete':
      return {}
  }
}
