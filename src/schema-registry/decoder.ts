import { AtATime } from '../async/at-a-time.ts'
import { type FramedRefusal, type PayloadReader, type PlainValue, readFrame, refuseFramed } from './frame.ts'
import type { SchemaAnswer, SchemaSource } from './schema-source.ts'

/** A framed value as plain JSON, or the reason why the value is refused. */
export type Decoded = PlainValue | FramedRefusal

export type Decoder = {
  /**
   * Decodes a value that begins with the magic byte. If the value's schema isn't known yet, returns a promise
   * that resolves when `decode` should be called again. The promise never rejects. It stays pending while the
   * registry can't be asked. After `stop`, it stays pending forever.
   */
  decode(value: Buffer): Decoded | Promise<void>
  /**
   * Begins to ask for the schema of a value that will be decoded later. The values of a partition are decoded
   * in order. Without this method, their schemas would be looked up one after the other.
   */
  lookAhead(value: Buffer): void
  /** Stops asking the registry. */
  stop(): void
}

export type DecoderOptions = {
  source: SchemaSource
  /** Called after each request to the registry. */
  onAnswer: (kind: SchemaAnswer['kind']) => void
  /**
   * Called with true and the reason when lookups of schemas begin to fail. Called with false when no lookup
   * fails any more.
   */
  onDown: (isDown: boolean, why: string) => void
  /** Returns milliseconds of a monotonic clock. */
  now: () => number
  /** Resolves after `ms` milliseconds. Rejects when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>
}

/**
 * The time for which the refusal of a schema is remembered, in milliseconds. After this time, the registry is
 * asked again, so a repair in the registry needs no restart of Sluice.
 */
const refusedForMs = 30_000
/**
 * A schema counts as unknown once the registry has said this many times that it has no such schema. One
 * answer isn't enough, because a node of the registry may not yet know a schema that another node has
 * accepted.
 */
const denialsBelieved = 3
/**
 * If the registry denied this many schemas within `refusedForMs`, Sluice assumes that a producer invents
 * schema ids. From then on, one denial is enough, because each further denial would hold up a partition for a
 * second. For example, a producer may send gRPC messages. Such a message looks like a framed value whose
 * schema id is the length of the message.
 */
const manyDenied = 20
/** The limit on the requests to the registry that are under way at the same time. */
const asksAtATime = 16
const denialPauseMs = 500
const firstPauseMs = 500
const longestPauseMs = 10_000
/** The longest wait that a registry can ask for, in milliseconds. Partitions stand still meanwhile. */
const longestAskedMs = 60_000
/**
 * The limit on the remembered schemas. A schema never changes, so it is remembered as long as the process
 * runs. An installation has only a handful of schemas, so only a producer that invents ids reaches this
 * limit.
 */
const maxSchemas = 1_000

/** Creates a decoder that asks a registry for schemas and remembers the answers. */
export function createDecoder(options: DecoderOptions): Decoder {
  return new RegistryDecoder(options)
}

class RegistryDecoder implements Decoder {
  readonly #options: DecoderOptions
  readonly #stopping = new AbortController()
  readonly #readers = new Map<number, PayloadReader>()
  readonly #refused = new Map<number, { refusal: FramedRefusal; untilMs: number }>()
  /** The lookups under way, by schema id. All values with the same schema wait for the same lookup. */
  readonly #lookups = new Map<number, Promise<void>>()
  readonly #asks = new AtATime(asksAtATime)
  /** The times of the last refusals of unknown schemas, at most `manyDenied` of them, oldest first. */
  readonly #deniedMs: number[] = []
  /** The ids of schemas that could not be fetched at the last try. */
  readonly #failing = new Set<number>()

  constructor(options: DecoderOptions) {
    this.#options = options
  }

  decode(value: Buffer): Decoded | Promise<void> {
    const frame = readFrame(value)
    if (!frame.ok) return frame
    const { schemaId, payload } = frame
    const read = this.#readers.get(schemaId)
    if (read !== undefined) return readWith(read, schemaId, payload)
    return this.#remembered(schemaId) ?? this.#lookUp(schemaId)
  }

  lookAhead(value: Buffer): void {
    const frame = readFrame(value)
    if (!frame.ok || this.#readers.has(frame.schemaId)) return
    if (this.#remembered(frame.schemaId) === undefined) void this.#lookUp(frame.schemaId)
  }

  stop(): void {
    this.#stopping.abort()
  }

  #remembered(schemaId: number): FramedRefusal | undefined {
    const refused = this.#refused.get(schemaId)
    if (refused === undefined || this.#options.now() < refused.untilMs) return refused?.refusal
    this.#refused.delete(schemaId)
    return undefined
  }

  #lookUp(schemaId: number): Promise<void> {
    const underWay = this.#lookups.get(schemaId)
    if (underWay !== undefined) return underWay
    const lookup = this.#ask(schemaId).finally(() => this.#lookups.delete(schemaId))
    this.#lookups.set(schemaId, lookup)
    return lookup
  }

  async #ask(schemaId: number): Promise<void> {
    const { onAnswer, pause } = this.#options
    const { signal } = this.#stopping
    let denials = 0
    let failures = 0
    for (;;) {
      const answer = await this.#askOnce(schemaId)
      if (answer === undefined) return never
      onAnswer(answer.kind)
      if (answer.kind !== 'failed') this.#answered(schemaId)
      switch (answer.kind) {
        case 'found':
          keep(this.#readers, schemaId, answer.read)
          return
        case 'unusable':
          this.#refuse(schemaId, unusable(schemaId, answer.why))
          return
        case 'unknown':
          denials++
          if (denials < denialsBelieved && !this.#areManyDenied) break
          this.#deny(schemaId)
          return
        case 'failed':
          failures++
          this.#failed(schemaId, answer.why)
      }
      const pauseMs = answer.kind === 'failed' ? pauseAfter(answer, failures) : denialPauseMs
      if (!(await isOver(pause(pauseMs, signal)))) return never
    }
  }

  /** Resolves with `undefined` if the decoder was stopped. */
  async #askOnce(schemaId: number): Promise<SchemaAnswer | undefined> {
    const { signal } = this.#stopping
    if (!(await isOver(this.#asks.take(signal)))) return undefined
    try {
      const answer = await this.#options.source.ask(schemaId, signal)
      return signal.aborted ? undefined : answer
    } finally {
      this.#asks.end()
    }
  }

  get #areManyDenied(): boolean {
    const [oldestMs = 0] = this.#deniedMs
    return this.#deniedMs.length === manyDenied && this.#options.now() - oldestMs < refusedForMs
  }

  #deny(schemaId: number): void {
    this.#deniedMs.push(this.#options.now())
    if (this.#deniedMs.length > manyDenied) this.#deniedMs.shift()
    this.#refuse(schemaId, unknown(schemaId))
  }

  #refuse(schemaId: number, refusal: FramedRefusal): void {
    keep(this.#refused, schemaId, { refusal, untilMs: this.#options.now() + refusedForMs })
  }

  #failed(schemaId: number, why: string): void {
    const isFirst = this.#failing.size === 0
    this.#failing.add(schemaId)
    if (isFirst) this.#options.onDown(true, why)
  }

  #answered(schemaId: number): void {
    if (this.#failing.delete(schemaId) && this.#failing.size === 0) this.#options.onDown(false, '')
  }
}

function readWith(read: PayloadReader, schemaId: number, payload: Buffer): Decoded {
  const result = read(payload)
  if (result.ok) return result
  return refuseFramed(
    result.reason,
    `Send a value that fits schema ${schemaId}, which it names: ${result.detail}.`,
  )
}

function unknown(schemaId: number): FramedRefusal {
  return refuseFramed(
    'unknown_schema',
    `Register schema ${schemaId}, or send from a producer that uses the registry of registry.url: that has no such schema.`,
  )
}

function unusable(schemaId: number, why: string): FramedRefusal {
  return refuseFramed('unusable_schema', `Send with another schema than ${schemaId}: ${why}.`)
}

/** Adds an entry to a map. If the map is full (`maxSchemas`), first drops the oldest entries. */
function keep<T>(map: Map<number, T>, schemaId: number, value: T): void {
  for (const oldest of map.keys()) {
    if (map.size < maxSchemas) break
    map.delete(oldest)
  }
  map.set(schemaId, value)
}

/**
 * Returns the wait after a failure, in milliseconds: the one that the registry asked for, if it is longer.
 */
function pauseAfter({ afterMs = 0 }: { readonly afterMs?: number }, failures: number): number {
  return Math.max(backoffMs(failures), Math.min(afterMs, longestAskedMs))
}

/**
 * Returns a random wait in milliseconds. The longest wait doubles with each failure, up to `longestPauseMs`.
 * The shortest wait is half of it. The wait is random so that workers don't ask at the same time.
 */
function backoffMs(failures: number): number {
  const wholeMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1))
  return wholeMs * (0.5 + Math.random() / 2)
}

async function isOver(pause: Promise<void>): Promise<boolean> {
  try {
    await pause
    return true
  } catch {
    return false
  }
}

const never = new Promise<void>(() => {})
