import type { PulledPartition } from '../kafka/group/consumer.ts'
import type { RecordProducer } from '../kafka/produce/producer.ts'
import { blockSize } from './block.ts'
import { keysOf, type MarkKeys, noBlock } from './load-marks.ts'
import {
  encodeDone,
  encodeOwners,
  fencesHeader,
  fencesText,
  lastDoneHeader,
  type MarkKey,
  markKeyText,
  type PlaceInLog,
  placeText,
} from './marks.ts'
import type { Owners } from './owners.ts'
import type { UnitIndex } from './unit-index.ts'

/** The part of a partition of `waiting` that its queue uses. */
export type QueuePartition = Pick<PulledPartition, keyof PulledPartition>

export type MarkWriterOptions = {
  readonly unit: number
  readonly marksTopic: string
  readonly topicId: string
  readonly writer: string
  readonly producer: Pick<RecordProducer, 'produce'>
  readonly partition: QueuePartition
  readonly owners: Owners
  readonly index: UnitIndex
  /** Returns the fences that the marks tell. */
  readonly fences: () => ReadonlyMap<string, number>
  /** The keys that the log of marks has. The writer keeps them up to date. */
  readonly keys: MarkKeys
  /**
   * Says whether these marks say nothing about the present log, and when they are removed. `once begun`: when
   * the commit says from where all is to be delivered. Until then, only they tell the next owner that the log
   * is another one.
   */
  readonly areVoid: 'no' | 'at once' | 'once begun'
}

/**
 * The time for which done records are collected before their marks are written, in milliseconds. If the
 * process is killed, the records that were done in this time are delivered again.
 */
const collectMs = 1_000
/** The same for a unit that another member waits for. */
const hurryMs = 20

type Mark = {
  readonly key: MarkKey
  readonly value: Buffer
  readonly headers: Readonly<Record<string, string>>
}

const allDone = Buffer.alloc(blockSize / 8, 0xff)

/**
 * Writes the marks of one unit: whose the records of full blocks are, and which records are done. A taken
 * record counts as taken until its mark is written, so that the next owner doesn't begin before.
 */
export class MarkWriter {
  readonly #options: MarkWriterOptions
  readonly #dirty = new Set<number>()
  /** The blocks whose owners mark is due, with the highest numbers of the writers at the end of the block. */
  readonly #sealed = new Map<number, ReadonlyMap<string, number>>()
  /** The highest record of each block that this owner has done, or has found void. */
  readonly #lastDone = new Map<number, PlaceInLog>()
  /** Which records of a block this owner has found void, as bitmaps. */
  readonly #voids = new Map<number, Buffer>()
  readonly #dirtyVoids = new Set<number>()
  /** The fences that the marks have told. */
  #told = ''
  /** The number of done records whose marks aren't written. */
  #unwritten = 0
  /** The keys of marks that are void and still there. */
  readonly #void: string[] = []
  #timer: NodeJS.Timeout | undefined
  #flushing = Promise.resolve()
  #isClosed = false

  constructor(options: MarkWriterOptions) {
    this.#options = options
    const outdated = options.keys.get(noBlock)
    options.keys.delete(noBlock)
    if (outdated !== undefined) void this.#remove([...outdated])
    if (options.areVoid === 'no') return
    this.#void.push(...[...options.keys.values()].flatMap((texts) => [...texts]))
    options.keys.clear()
    if (options.areVoid === 'at once') void this.#removeVoid()
  }

  /**
   * Notes that a taken record is done. `leaderEpoch` is the epoch of the leader that appended it; -1 if it
   * isn't known.
   */
  done(offset: number, leaderEpoch = -1): void {
    this.#changed({ offset, leaderEpoch })
    this.#unwritten++
    this.#soon()
  }

  /** Notes that a record is void, and so done. Its leader epoch is -1 if it isn't known. */
  voided(place: PlaceInLog): void {
    const block = this.#changed(place)
    let bits = this.#voids.get(block)
    if (bits === undefined) this.#voids.set(block, (bits = Buffer.alloc(blockSize / 8)))
    const at = place.offset % blockSize
    bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7))
    this.#dirtyVoids.add(block)
    this.#soon()
  }

  /** Notes that the done mark of the record's block is due. Returns the block. */
  #changed(place: PlaceInLog): number {
    const block = Math.floor(place.offset / blockSize)
    this.#dirty.add(block)
    if (place.leaderEpoch >= 0 && place.offset >= (this.#lastDone.get(block)?.offset ?? 0))
      this.#lastDone.set(block, place)
    return block
  }

  /** Notes that the index knows whose the first records of a block are. */
  sealed(block: number, sequences: ReadonlyMap<string, number>): void {
    this.#sealed.set(block, sequences)
    this.#soon()
  }

  /** Writes all that is due. Resolves once Kafka has it. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.then(() => this.#flush())
    return this.#flushing
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #soon(): void {
    if (this.#isClosed || this.#timer !== undefined) return
    const waitMs = this.#options.partition.isLost ? hurryMs : collectMs
    this.#timer = setTimeout(() => void this.flush(), waitMs)
  }

  async #flush(): Promise<void> {
    const { partition, owners, index, topicId, writer } = this.#options
    const fences = this.#tellFences()
    const dirty = [...this.#dirty]
    const sealed = [...this.#sealed]
    const settled = this.#unwritten
    const { head } = index
    const marks: Mark[] = this.#takeVoids()
    this.#dirty.clear()
    this.#sealed.clear()
    this.#unwritten = 0
    for (const [block, sequences] of sealed) {
      const runs = index.block(block)?.runs
      // Nobody needs to know whose the records were once all of them are done.
      if (runs !== undefined)
        marks.push({
          key: { kind: 'owners', topicId, block },
          value: encodeOwners({ runs, sequences }, owners),
          headers: {},
        })
    }
    for (const block of dirty) {
      const bits = index.block(block)?.doneBits() ?? allDone
      const last = this.#lastDone.get(block)
      marks.push({
        key: { kind: 'done', topicId, block, writer },
        value: encodeDone(bits),
        headers: {
          ...(fences !== '' && { [fencesHeader]: fences }),
          ...(last !== undefined && { [lastDoneHeader]: placeText(last) }),
        },
      })
    }
    await Promise.all(marks.map((mark) => this.#write(mark)))
    for (let count = 0; count < settled; count++) partition.giveBack()
    if (partition.isBegun || partition.isLost) partition.moveTo(head)
    await this.#removeBelow(partition.committedOffset)
    if (partition.isBegun) await this.#removeVoid()
    if (this.#dirty.size > 0 || this.#sealed.size > 0) this.#soon()
  }

  /** Returns the text of the fences. If no mark has told it, one of a block that still waits is due. */
  #tellFences(): string {
    const { fences, index } = this.#options
    const text = fencesText(fences())
    const block = Math.floor(index.head / blockSize)
    if (text !== this.#told && index.block(block) !== undefined) {
      this.#dirty.add(block)
      this.#told = text
    }
    return text
  }

  /** The marks of void records come first: a void record that only counts as done could hide its message. */
  #takeVoids(): Mark[] {
    const { topicId, writer } = this.#options
    const blocks = [...this.#dirtyVoids]
    this.#dirtyVoids.clear()
    return blocks.flatMap((block) => {
      const bits = this.#voids.get(block)
      const key: MarkKey = { kind: 'void', topicId, block, writer }
      return bits === undefined ? [] : [{ key, value: encodeDone(bits), headers: {} }]
    })
  }

  /**
   * Removes the marks of blocks whose records all lie before the committed offset. The block with the last of
   * these records is kept: its mark names a record by which the next owner knows that the log is the same.
   */
  async #removeBelow(offset: number): Promise<void> {
    const { keys } = this.#options
    const outdated: string[] = []
    for (const [block, texts] of keys) {
      if ((block + 1) * blockSize >= offset) continue
      keys.delete(block)
      this.#lastDone.delete(block)
      this.#voids.delete(block)
      outdated.push(...texts)
    }
    await this.#remove(outdated)
  }

  async #removeVoid(): Promise<void> {
    await this.#remove(this.#void.splice(0))
  }

  async #write({ key, value, headers }: Mark): Promise<void> {
    const text = markKeyText(key)
    keysOf(this.#options.keys, key.block).add(text)
    await this.#produce(text, value, headers)
  }

  async #remove(texts: readonly string[]): Promise<void> {
    await Promise.all(texts.map((text) => this.#produce(text, null)))
  }

  async #produce(text: string, value: Buffer | null, headers: Mark['headers'] = {}): Promise<void> {
    const { producer, marksTopic: topic, unit: partition } = this.#options
    await producer.produce({ topic, partition, key: Buffer.from(text), value, headers })
  }
}
