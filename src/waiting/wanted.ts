import { setTimeout as delay } from 'node:timers/promises'
import type { WholeRecord } from '../message/records.ts'
import { Counts } from './counts.ts'
import { againAfterMs } from './look.ts'
import type { LogPiece } from '../kafka/read/partition-reader.ts'
import { type Piece, take } from './pieces.ts'
import type { UnitQueueOptions } from './queue-options.ts'

/** A log whose reading has taken longer than this, in milliseconds, counts as stuck. */
const stuckMs = 2_000

/** While there is no room for what was read, this time passes between two looks, in milliseconds. */
export const roomLookMs = 25

type WantedOptions = Pick<
  UnitQueueOptions,
  'unit' | 'topic' | 'reader' | 'owners' | 'pieces' | 'handing' | 'hasRoom' | 'log'
> & {
  readonly signal: AbortSignal
  /** Returns false once no record may be taken out of the queue. */
  readonly mayTake: () => boolean
  /** Returns the offset after the last indexed record. */
  readonly end: () => number
  /** Takes a record that was read. `undefined`: the log has it no more. */
  readonly take: (offset: number, code: number, record: WholeRecord | undefined) => void
  /** Called with a record that is given back to the queue without being read. */
  readonly giveBack: (offset: number) => void
  /** Called with what a fetch brought. */
  readonly onFetched: (records: LogPiece['records']) => void
}

/** The records of one unit that are taken out of the queue, and whose content isn't read yet. */
export class Wanted {
  readonly #options: WantedOptions
  /** By their offsets, with their codes. */
  readonly #codes = new Map<number, number>()
  readonly #counts = new Counts()
  #isReading = false
  /** The destinations for which something was fetched in this round. */
  readonly #served = new Set<string>()
  /** Since when a fetch is under way, or fails. */
  #unreadSinceMs: number | undefined

  constructor(options: WantedOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#codes.size
  }

  /** The number of wanted records of a code. */
  of(code: number): number {
    return this.#counts.of(code)
  }

  add(offset: number, code: number): void {
    this.#codes.set(offset, code)
    this.#counts.add(code, 1)
  }

  /** Gives all of them back to the queue. */
  returnAll(): void {
    for (const offset of this.#codes.keys()) {
      this.#forget(offset)
      this.#options.giveBack(offset)
    }
  }

  /**
   * True if the log can't be read for a while, for example because the partition has no leader. Nothing may
   * be taken meanwhile: it would take the room that the destination has for messages of other units.
   */
  get isStuck(): boolean {
    return this.#unreadSinceMs !== undefined && performance.now() - this.#unreadSinceMs > stuckMs
  }

  /**
   * Reads what is wanted, in the order of the offsets, and hands it on. What is kept in memory comes first.
   * Other work of the event loop goes on meanwhile.
   */
  async read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    const { unit, signal, mayTake, log } = this.#options
    let fetched: Piece | undefined
    let missing: number | undefined
    // If all of it was given back, what is missing is fetched nevertheless, to see when the log can be read.
    while ((this.#codes.size > 0 || missing !== undefined) && mayTake()) {
      try {
        while (!this.#hasRoom() && mayTake()) await delay(roomLookMs, undefined, { signal })
        missing ??= await this.#handOn(fetched)
        fetched = missing === undefined || !mayTake() ? undefined : await this.#fetch(missing)
        missing = undefined
      } catch (error) {
        if (signal.aborted) break
        log.warn({ err: error, unit }, 'waiting messages can not be read, trying again')
        await delay(againAfterMs, undefined, { signal }).catch(() => undefined)
      }
    }
    if (!mayTake()) this.returnAll()
    this.#served.clear()
    this.#isReading = false
  }

  /**
   * Hands on what is in memory: in `fetched`, or in a piece that is kept, while there is room for it. No
   * record overtakes one of its destination. Returns the offset that has to be fetched next.
   */
  async #handOn(fetched: Piece | undefined): Promise<number | undefined> {
    const { unit, pieces, handing, owners } = this.#options
    /** The first offset of each destination that isn't in memory. */
    const missing = new Map<string, number>()
    let piece = fetched
    for (const [offset, code] of this.#inOrder()) {
      const destinationId = owners.destinationOf(code)
      if (missing.has(destinationId)) continue
      if (piece === undefined || !covers(piece, offset))
        piece = fetched !== undefined && covers(fetched, offset) ? fetched : pieces.find(unit, offset)
      if (piece === undefined) {
        missing.set(destinationId, offset)
        continue
      }
      // It is read before the wait, in which the piece may be dropped.
      const record = take(piece, offset)
      const turn = handing.take()
      if (turn !== undefined) await turn
      if (!this.#hasRoom()) return undefined
      this.#hand(offset, record)
    }
    return this.#nextOf(missing)
  }

  /**
   * Returns the first of the offsets, and each destination has its turn in a round. If it were always the
   * first of all, younger messages would wait for as long as more and more is wanted of older ones.
   */
  #nextOf(missing: ReadonlyMap<string, number>): number | undefined {
    const inOrder = [...missing].toSorted(([, a], [, b]) => a - b)
    const [first] = inOrder
    if (first === undefined) return undefined
    let next = inOrder.find(([destinationId]) => !this.#served.has(destinationId))
    if (next === undefined) this.#served.clear()
    next ??= first
    this.#served.add(next[0])
    return next[1]
  }

  #hasRoom(): boolean {
    return this.#options.hasRoom?.() !== false
  }

  /** Returns what is wanted in the order of its offsets, the class `front` before all others. */
  #inOrder(): (readonly [offset: number, code: number])[] {
    const { owners } = this.#options
    const rankOf = ([offset, code]: readonly [number, number]): number =>
      owners.classOf(code) === 'front' ? offset - Number.MAX_SAFE_INTEGER : offset
    return [...this.#codes].toSorted((a, b) => rankOf(a) - rankOf(b))
  }

  async #fetch(offset: number): Promise<Piece> {
    const { unit, topic, reader, pieces, signal, end, onFetched } = this.#options
    const from = pieces.startFor(unit, offset)
    const asked = { from, to: end(), hasWholeBatch: true, maxBytes: pieces.fetchBytes }
    this.#unreadSinceMs ??= performance.now()
    const found = await reader.piece({ topic, partition: unit, ...asked, signal })
    this.#unreadSinceMs = undefined
    onFetched(found.records)
    return pieces.add(unit, from, found)
  }

  #hand(offset: number, record: WholeRecord | undefined): void {
    const code = this.#codes.get(offset)
    // It may have been given back meanwhile.
    if (code === undefined) return
    this.#forget(offset)
    this.#options.take(offset, code, record)
  }

  #forget(offset: number): void {
    this.#counts.add(this.#codes.get(offset) ?? 0, -1)
    this.#codes.delete(offset)
  }
}

function covers({ from, next, isDropped }: Piece, offset: number): boolean {
  return !isDropped && offset >= from && offset < next
}
