import type { HeldRecord } from '../../../src/message/held-record.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { setImmediate as turn } from 'node:timers/promises'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import type { OwnRequest } from '../../../src/delivery/send/sender.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type {
  Pipeline,
  PipelineOptions,
  IdentifyToDeliver,
  OutboundRecord,
} from '../../../src/pipeline/pipeline-ports.ts'

/**
 * A pipeline with its real lanes. A customer answers when a test says so. So do Kafka and the judge, if the
 * test gives functions for them.
 */

export const startMs = 1_700_000_000_000
export const hour = 3_600_000

export const taken: Outcome = { kind: 'answer', status: 200 }
export const failed: Outcome = { kind: 'answer', status: 500 }
export const refused: Outcome = { kind: 'answer', status: 400 }
export const throttled: Outcome = { kind: 'answer', status: 429 }

export type Destination = DestinationDefinition & { readonly sources: readonly string[] }

export function destinationOf(id: string, settings: Partial<Destination> = {}): Destination {
  return {
    id,
    state: 'on',
    filter: undefined,
    maxInFlight: 100,
    strategy: 'all',
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    rateLimit: undefined,
    hooks: [{ id: 'hook', origin: `https://${id}.example`, path: '/', headers: [] }],
    sources: ['space'],
    ...settings,
  }
}

/** A request that has no outcome yet. */
export type Posted = {
  readonly to: string
  readonly body: string
  /** What a mapping has changed of the request. */
  readonly own: OwnRequest | undefined
  /** The headers that only this request has. */
  readonly headers: readonly string[]
  /**
   * Ends the request. If `mayHaveArrived` isn't given, it is what the sender says for an outcome of this
   * kind: true for a timeout, and otherwise false.
   */
  answer(outcome: Outcome, mayHaveArrived?: boolean): void
}

/** A record that a test hands in. It counts how often it was settled and given back. */
export class TestRecord implements HeldRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly isLate = false
  isAbandoned = false
  isElsewhere = false
  mayHaveBegun = false
  settled = 0
  givenBack = 0

  constructor(topic: string, offset: number, settings: Partial<TestRecord> = {}) {
    this.topic = topic
    this.partition = settings.partition ?? 2
    this.offset = offset
    this.timestampMs = settings.timestampMs ?? startMs
    this.isAbandoned = settings.isAbandoned ?? false
    this.mayHaveBegun = settings.mayHaveBegun ?? false
  }

  settle(): void {
    this.settled++
  }

  giveBack(): void {
    this.givenBack++
  }
}

export type Stage = {
  pipeline: Pipeline
  /** The requests that are under way. */
  posted: Posted[]
  /** All records that were produced and acknowledged. */
  written: OutboundRecord[]
  /** The calls of the observer and of `needsBackfill`, one line each. */
  told: string[]
  judged: WaitingDelivery[]
  identify(value: string, settings?: Partial<TestRecord & IdentifyToDeliver>): TestRecord
  /** Hands in a record again that was written to a retry topic. */
  retry(record: OutboundRecord | undefined, settings?: Partial<TestRecord>): TestRecord
  answer(outcome: Outcome, body?: string): Promise<void>
  /** Returns the bodies that are under way, in the order in which they were posted. */
  bodies(): string[]
  /** Lets everything go on that waits for nothing. */
  settle(): Promise<void>
}

export type StageOptions = Partial<PipelineOptions> & {
  /**
   * After a call of `needsBackfill`, its mark counts as written only when the test resolves this promise. Without
   * this promise, the mark counts as written at once.
   */
  marked?: PromiseWithResolvers<void>
  destinations?: readonly Destination[]
  sources?: Readonly<Record<string, { enabled?: boolean; kind?: 'events' | 'audiences' }>>
}

/** Starts a pipeline on a stage. The judge says `send`, unless `options` has another judge. */
export function stage({
  destinations = [destinationOf('crm')],
  sources = { space: { kind: 'audiences' } },
  marked,
  ...options
}: StageOptions = {}): Stage {
  const posted: Posted[] = []
  const written: OutboundRecord[] = []
  const told: string[] = []
  const judged: WaitingDelivery[] = []
  const { judge = async (): Promise<Judgement> => ({ kind: 'send' }) } = options
  const catalog = {
    sources: new Map(
      Object.entries(sources).map(([id, source]) => [id, { enabled: true, ...source }] as const),
    ),
    destinations: new Map(destinations.map((destination) => [destination.id, destination])),
    destinationsBySource: new Map(
      Object.keys(sources).map((id) => [
        id,
        destinations.filter(({ sources: connected }) => connected.includes(id)),
      ]),
    ),
  }
  const pipeline = createPipeline({
    catalog: () => catalog,
    // On a busy machine, code that isn't compiled yet takes longer than the default.
    maxRuleMs: 10_000,
    sender: {
      post({ origin }, body, headers, exchange) {
        const one: Posted = {
          to: new URL(origin).hostname.replace('.example', ''),
          body: Buffer.from(body).toString(),
          own: exchange.own,
          headers,
          answer(outcome, mayHaveArrived = outcome.kind === 'timeout') {
            posted.splice(posted.indexOf(one), 1)
            exchange.answered(outcome, mayHaveArrived)
            exchange.released()
          },
        }
        posted.push(one)
      },
      async close() {},
    },
    outlet: {
      async produce(record) {
        written.push(record)
        return 'acknowledged'
      },
    },
    observer: {
      attempted() {},
      firstTried() {},
      omitted() {},
      delivered: ({ destinationId, body }) => told.push(`delivered ${destinationId} ${String(body)}`),
      parked: ({ destinationId, body }, why) => told.push(`parked ${destinationId} ${String(body)}: ${why}`),
      deadLettered: (reason, _detail, _where, delivery) =>
        told.push(`dead ${delivery?.destinationId ?? 'record'}: ${reason}`),
      notRouted: (reason) => told.push(`not routed: ${reason}`),
      dropped: ({ destinationId, body }, why) => told.push(`${why} ${destinationId} ${String(body)}`),
      unknownSource: (sourceId) => told.push(`unknown source ${sourceId}`),
      repeated() {},
      failed() {},
    },
    ladder: { waitsMs: [60_000, 600_000], thenMs: 60_000, limitMs: 4 * hour },
    topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
    limits: defaultLimits,
    maxInFlight: 1_000,
    laneWaitMs: 60_000,
    lanePatienceMs: 60_000,
    // The breaker never opens, and holds nothing back after a 429.
    bulkhead: roomyBulkhead,
    namesRequests: false,
    breaker: { failureShare: 1, minResults: 1_000_000, windowMs: 10_000, openMs: 0, maxOpenMs: 0 },
    buffer: { records: 10_000, bytes: 10_000_000 },
    onPressure() {},
    onCongested() {},
    needsBackfill: (destinationId, spaceId) => {
      told.push(`behind ${destinationId} ${spaceId}`)
      return marked?.promise
    },
    now: () => startMs,
    ...options,
    judge(waiting) {
      judged.push(waiting)
      return judge(waiting)
    },
  })
  let offset = 0
  return {
    pipeline,
    posted,
    written,
    told,
    judged,
    identify(value, settings = {}) {
      const record = new TestRecord('memberships', offset++, settings)
      pipeline.acceptIdentify(record, {
        kind: 'identify',
        userId: 'u',
        spaceId: 'space',
        property: 'p',
        since: `since ${value}`,
        messageId: `id ${value}`,
        body: Buffer.from(value),
        ...settings,
      })
      return record
    },
    retry(outbound, settings = {}) {
      if (outbound === undefined) throw new Error('nothing was written')
      const { topic, key, value, headers, partition } = outbound
      const record = new TestRecord(topic, offset++, { partition, ...settings })
      pipeline.accept(record, { key, value, headers })
      return record
    },
    async answer(outcome, body) {
      const one = posted.find((request) => body === undefined || request.body === body)
      if (one === undefined) throw new Error(`no request ${body ?? ''} is under way`)
      one.answer(outcome)
      await settle()
    },
    bodies: () => posted.map(({ body }) => body),
    settle,
  }
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await turn()
}
