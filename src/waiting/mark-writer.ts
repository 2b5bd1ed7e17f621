import type { PulledPartition } from '../kafka/group/consumer.ts'
import type { RecordProducer } from '../kafka/produce/producer.ts'
import { blockSize } from './block.ts'
import { keysOf, type MarkKeys, noBlock } from './load-marks.ts'
import { encodeDone, encodeOwners, type MarkKey, markKeyText } from './marks.ts'
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
  /** The keys that the log of marks has. The writer keeps them up to date. */
  readonly keys: MarkKeys
}

/**
 * The time for which done records are collected before their marks are written, in milliseconds. If the
 * process is killed, the records that were done in this time are delivered again.
 */
const collectMs = 1_000
/** The same for a unit that another member waits for. */
const hurryMs = 20

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
  /** The number of done records whose marks aren't written. */
  #unwritten = 0
  #timer: NodeJS.Timeout | undefined
  #flushing = Promise.resolve()
  #isClosed = false

  constructor(options: MarkWriterOptions) {
    this.#options = options
    const outdated = options.keys.get(noBlock)
    options.keys.delete(noBlock)
    if (outdated !== undefined) void this.#remove([...outdated])
  }

  /** Notes that a taken record is done. */
  done(offset: number): void {
    this.#dirty.add(Math.floor(offset / blockSize))
    this.#unwritten++
    this.#soon()
  }

  /** Notes that the index knows whose the first records of a block are. */
  sealed(block: number, sequences: ReadonlyMap<string, number>): void {
    this.#sealed.set(block, sequences)
    this.#soon()
  }

  /** Removes marks that no longer count. */
  forget(keys: MarkKeys): void {
    const all = [...keys.values()].flatMap((texts) => [...texts])
    keys.clear()
    void this.#remove(all)
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
    const dirty = [...this.#dirty]
    const sealed = [...this.#sealed]
    const settled = this.#unwritten
    const { head } = index
    this.#dirty.clear()
    this.#sealed.clear()
    this.#unwritten = 0
    const marks: { readonly key: MarkKey; readonly value: Buffer }[] = []
    for (const [block, sequences] of sealed) {
      const runs = index.block(block)?.runs
      // Nobody needs to know whose the records were once all of them are done.
      if (runs !== undefined)
        marks.push({
          key: { kind: 'owners', topicId, block },
          value: encodeOwners({ runs, sequences }, owners),
        })
    }
    for (const block of dirty) {
      const bits = index.block(block)?.doneBits() ?? allDone
      marks.push({ key: { kind: 'done', topicId, block, writer }, value: encodeDone(bits) })
    }
    await Promise.all(marks.map(({ key, value }) => this.#write(markKeyText(key), key.block, value)))
    for (let count = 0; count < settled; count++) partition.giveBack()
    if (partition.isBegun || partition.isLost) partition.moveTo(head)
    await this.#removeBelow(partition.committedOffset)
    if (this.#dirty.size > 0 || this.#sealed.size > 0) this.#soon()
  }

  /** Removes the marks of blocks whose records all lie before the committed offset. */
  async #removeBelow(offset: number): Promise<void> {
    const { keys } = this.#options
    const outdated: string[] = []
    for (const [block, texts] of keys) {
      if ((block + 1) * blockSize > offset) continue
      keys.delete(block)
      outdated.push(...texts)
    }
    await this.#remove(outdated)
  }

  async #write(text: string, block: number, value: Buffer): Promise<void> {
    keysOf(this.#options.keys, block).add(text)
    await this.#produce(text, value)
  }

  async #remove(texts: readonly string[]): Promise<void> {
    await Promise.all(texts.map((text) => this.#produce(text, null)))
  }

  async #produce(text: string, value: Buffer | null): Promise<void> {
    const { producer, marksTopic: topic, unit: partition } = this.#options
    await producer.produce({ topic, partition, key: Buffer.from(text), value, headers: {} })
  }
}
