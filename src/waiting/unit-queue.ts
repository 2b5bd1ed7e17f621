import { setTimeout as delay } from 'node:timers/promises'
import type { HeldRecord } from '../message/held-record.ts'
import { headerText } from '../message/record-headers.ts'
import type { WholeRecord } from '../message/records.ts'
import { AppendTimes } from './append-times.ts'
import { blockSize } from './block.ts'
import { Counts } from './counts.ts'
import { Drops } from './drops.ts'
import { Fences } from './fences.ts'
import { heldWaiting } from './held-waiting.ts'
import { loadMarks, otherFrom } from './load-marks.ts'
import { againAfterMs, lookMs } from './look.ts'
import { type OwnersMark, parseQueued, type PlaceInLog, queuedHeader, queuedText } from './marks.ts'
import { MarkWriter } from './mark-writer.ts'
import { OldRecords } from './old-records.ts'
import { QueuedBefore } from './queued-before.ts'
import { type QueuedMessage, queuedHeaders, queuedMessage } from './queued-message.ts'
import type { AppendedRecord, FoundLog, UnitQueueOptions } from './queue-options.ts'
import { type Tenure, tenureOf, writerOf } from './tenure.ts'
import { UnitIndex } from './unit-index.ts'
import { Wanted } from './wanted.ts'

const tookOver = 'took over the messages that wait for their turn'

/**
 * The queues of all destinations in one unit: a partition of `waiting`, and the index of what it holds. It
 * exists for one tenure of the unit at this member.
 *
 * An append that Kafka has acknowledged extends the index if it is the next record of the log. After any gap,
 * the log is read, so a record that somebody else appended can't be missed.
 */
export class UnitQueue {
  readonly before = new QueuedBefore()
  readonly #options: UnitQueueOptions
  readonly #fences: Fences
  readonly #old: OldRecords
  /** Identifies this tenure. */
  readonly #writer: string
  readonly #stopping = new AbortController()
  readonly #startedMs = performance.now()
  #index = new UnitIndex(0)
  #marks: MarkWriter | undefined
  /** The highest number of each writer whose record is indexed. */
  #sequences = new Map<string, number>()
  #sequence = 0
  /** The numbers of appends that Kafka hasn't acknowledged, by code. */
  readonly #unacknowledged = new Counts()
  /** The log is known to have records before this offset. */
  #knownEnd = 0
  #reading: Promise<void> | undefined
  readonly #wanted: Wanted
  readonly #drops = new Drops()
  readonly #times = new AppendTimes()
  /**
   * The full blocks of which a former owner has written no mark, because it was killed, as for
   * `MarkWriter.sealed`. Without the marks, each further owner would read all from the first of them on.
   */
  readonly #unsealed = new Map<number, ReadonlyMap<string, number>>()
  /** The offsets of the records that an earlier owner has found void. */
  #void: ReadonlySet<number> = new Set()
  /** Those that this owner has found void before it could mark them. */
  readonly #unmarked: PlaceInLog[] = []
  /** True while a record counts as taken, so that no next owner begins before the last look at the log. */
  #isHeld = false
  #isLeaving = false
  #lookAtMs = 0
  #topicId = ''

  constructor(options: UnitQueueOptions) {
    this.#options = options
    const tenure = { epoch: options.partition.found.epoch + 1, sinceMs: Date.now() }
    this.#writer = writerOf(tenure)
    this.#fences = new Fences(options.unit, tenure)
    this.#old = new OldRecords({
      ...options,
      mayTake: () => this.mayTake,
      held: (record) => this.#held(record),
      signal: this.#stopping.signal,
    })
    this.#wanted = new Wanted({
      ...options,
      mayTake: () => this.mayTake,
      end: () => this.#index.end,
      take: (offset, code, record) => this.#hand(offset, code, record),
      giveBack: (offset) => this.#return(offset),
      onFetched: (records) => {
        this.#times.note(records[0])
        this.#times.note(records.at(-1))
      },
      signal: this.#stopping.signal,
    })
  }

  get undone(): number {
    return this.#index.undone
  }

  /** True if no record waits, not even for its acknowledgement or its content. */
  get isEmpty(): boolean {
    return this.#index.untaken === 0 && this.#unacknowledged.isEmpty && this.wanted === 0
  }

  get indexBytes(): number {
    return this.#index.bytes
  }

  /** The codes of which a record waits. */
  codes(): Iterable<number> {
    return this.#index.codes()
  }

  /** The codes with a record that isn't done, taken ones included. */
  undoneCodes(): Iterable<number> {
    return this.#index.undoneCodes()
  }

  /** The number of records of a class that aren't done, taken ones included. */
  undoneOf(code: number): number {
    return this.#index.undoneOf(code)
  }

  /**
   * Returns when the first record of a class that waits was appended, in epoch milliseconds. `undefined`: not
   * known yet, or none waits. `learnTimes` finds out what isn't known.
   */
  oldestOf(code: number): number | undefined {
    const offset = this.#index.firstOf(code)
    return offset < 0 ? undefined : this.#times.ask(offset)
  }

  /** Returns about when the first record of a class that waits was appended, as `AppendTimes.about`. */
  aboutOldestOf(code: number): number {
    const offset = this.#index.firstOf(code)
    return offset < 0 ? Infinity : this.#times.about(offset)
  }

  /** When the first record that isn't done was appended. `undefined`: not known yet, or all are done. */
  get oldestMs(): number | undefined {
    return this.#index.undone === 0 ? undefined : this.#times.ask(this.#index.head)
  }

  /** Reads one piece of the log for the times that `oldestOf` didn't know. Rejects if it can't be read. */
  async learnTimes(): Promise<void> {
    const { unit, topic, reader, pieces } = this.#options
    const { signal } = this.#stopping
    this.#times.dropBefore(this.#index.head)
    const { unknown: from } = this.#times
    if (from === undefined || signal.aborted) return
    const where = { topic, partition: unit, from, to: this.#index.end, signal }
    const kept = pieces.find(unit, from)?.records.times()
    this.#times.learn(from, kept ?? (await reader.piece(where)).records)
  }

  /** The number of records of a class that wait, and are neither taken nor done. */
  untakenOf(code: number): number {
    return this.#index.untakenOf(code)
  }

  /** Returns true if a further record of this code has to join the end of the queue. */
  has(code: number): boolean {
    return this.#index.untakenOf(code) > 0 || this.#unacknowledged.of(code) > 0 || this.wantedOf(code) > 0
  }

  /** The number of taken records whose content isn't read yet. */
  get wanted(): number {
    return this.#wanted.size
  }

  /** The number of taken records of a code whose content isn't read yet. */
  wantedOf(code: number): number {
    return this.#wanted.of(code)
  }

  /** True once the index is complete, until the unit is lost. */
  get isReady(): boolean {
    return this.#marks !== undefined && !this.#options.partition.isLost
  }

  /** True while records may be taken out of the queue. */
  get mayTake(): boolean {
    return this.#marks !== undefined && this.#options.partition.isBegun && !this.#stopping.signal.aborted
  }

  /** True while records should be taken: they could be read. */
  get mayPull(): boolean {
    return this.mayTake && !this.#wanted.isStuck
  }

  /** Reads the marks of earlier owners, and the records that no mark describes. */
  async load(): Promise<void> {
    const { unit, topic, marksTopic, reader, owners, partition, onLost, log } = this.#options
    const { signal } = this.#stopping
    const startedMs = performance.now()
    const where = { topic, partition: unit, signal }
    const topicId = (await reader.topicId(where)) ?? ''
    this.#topicId = topicId
    const range = await reader.range(where)
    const loaded = await loadMarks({ reader, topic: marksTopic, unit, topicId, owners, signal })
    const { found } = partition
    const isOtherLog = found.topicId !== undefined && topicId !== '' && found.topicId !== topicId
    // If the log has lost records that were done, others have or will have their offsets, also below the
    // commit.
    const differsFrom = Math.min(found.otherFrom, await otherFrom(reader, where, loaded.lastPlace))
    if (differsFrom < Infinity) partition.isOtherFrom(differsFrom)
    const commit = Math.min(found.offset, differsFrom)
    const from = isOtherLog || commit > range.end ? range.start : Math.max(commit, range.start)
    // If somebody has moved the commit, all records from there are to be delivered.
    const isVoid = found.isForeign || isOtherLog || loaded.lastDone >= range.end || differsFrom < Infinity
    const index = new UnitIndex(from)
    this.#index = index
    this.#sequences = new Map()
    if (!isVoid) this.#pushKnown(loaded.owners, range.end)
    // These blocks have their marks.
    this.#unsealed.clear()
    this.#knownEnd = range.end
    this.#void = isVoid ? new Set() : loaded.void
    this.#fences.learn(isVoid ? [] : loaded.fences)
    await this.#read()
    if (!isVoid)
      for (const offset of loaded.doneFrom(from))
        if (offset < index.end && !index.isDone(offset)) index.finish(offset)
    const deleted = isVoid || found.offset < 0 ? 0 : loaded.undoneBetween(found.offset, range.start)
    if (deleted > 0) onLost(deleted)
    this.#marks = new MarkWriter({
      ...this.#options,
      topicId,
      writer: this.#writer,
      index,
      fences: () => this.#fences.told,
      keys: loaded.keys,
      areVoid: !isVoid ? 'no' : differsFrom < Infinity && !found.isForeign ? 'once begun' : 'at once',
    })
    for (const place of this.#unmarked.splice(0)) this.#marks.voided(place)
    if (!signal.aborted) partition.lend()
    this.#isHeld = !signal.aborted
    this.#lookAtMs = performance.now() + lookMs.early
    const { undone, end, head } = index
    const tookMs = Math.round(performance.now() - startedMs)
    if (undone > 0) log.info({ unit, waiting: undone, head, end, tookMs }, tookOver)
    for (const code of index.codes()) this.#options.onWaiting(code)
  }

  /** Notes that this owner has begun a topic of the unit. */
  begin(topic: string): void {
    this.#fences.note(topic)
  }

  /** Appends a record. Resolves once Kafka has it, or has refused it as too large. */
  async append(
    { key, value, headers: own, source }: AppendedRecord,
    code: number,
  ): Promise<'acknowledged' | 'refused'> {
    const { unit, topic, producer, owners, partition } = this.#options
    const sequence = ++this.#sequence
    const queued = queuedText({ writer: this.#writer, sequence, queueClass: owners.classOf(code) })
    this.#unacknowledged.add(code, 1)
    const headers = queuedHeaders(own, source, queued)
    const fence = this.#fences.ahead(partition.isBegun)
    const produced = await producer.produceAt({ key, value, topic, partition: unit, headers })
    if (produced !== 'refused') {
      fence(produced.offset + 1)
      // The record is indexed before it stops counting as unacknowledged, so that none overtakes it.
      this.#acknowledged(produced.offset, sequence, code)
    }
    this.#unacknowledged.add(code, -1)
    return produced === 'refused' ? 'refused' : 'acknowledged'
  }

  /**
   * Takes up to `most` records of a code, in their order: the first, and those behind it that were appended
   * at about `untilMs` or earlier. Returns how many were taken.
   */
  pull(code: number, most: number, untilMs = Infinity): number {
    if (!this.mayTake) return 0
    let count = 0
    for (; count < most; count++) {
      if (count > 0 && untilMs < Infinity && this.aboutOldestOf(code) > untilMs) break
      const offset = this.#index.take(code)
      if (offset < 0) break
      this.#want(offset, code)
    }
    if (count > 0) void this.#wanted.read()
    return count
  }

  /**
   * Gives up the records of a code that wait now and were appended at `untilMs` or earlier, in epoch
   * milliseconds. They are taken out a few at a time.
   */
  drop(code: number, untilMs: number): void {
    if (this.#index.undoneOf(code) > 0) this.#drops.order(code, this.#index.end, untilMs)
    this.#dropOn()
  }

  /** Leaves in the queue what was taken, and isn't read yet. */
  leaveWanted(): void {
    this.#wanted.returnAll()
  }

  #dropOn(): void {
    const want = (offset: number, code: number): void => this.#want(offset, code)
    if (this.#drops.takeSome(this.#index, () => this.mayTake, want)) void this.#wanted.read()
  }

  #want(offset: number, code: number): void {
    this.#options.partition.lend()
    this.#wanted.add(offset, code)
  }

  /** Does what is due. Called several times a second. */
  tick(): void {
    const { partition } = this.#options
    if (this.#marks === undefined) return
    if (partition.isBegun) partition.moveTo(this.#index.head)
    if (partition.isBegun && this.#fences.begin()) this.#lookAtMs = 0
    if (partition.isLost) this.#leave()
    if (this.#wanted.isStuck) this.#wanted.returnAll()
    if (this.#drops.hasOrders) this.#dropOn()
    // Until then, an owner that follows a kill still has to read what the killed owner queued last.
    if (performance.now() - this.#startedMs > lookMs.earlyFor) this.#sealRead()
    this.#options.pieces.dropBefore(this.#options.unit, this.#index.head)
  }

  /** True if it is time to look whether somebody else has appended records, or the log has lost some. */
  isLookDue(nowMs: number): boolean {
    if (this.#marks === undefined || nowMs < this.#lookAtMs) return false
    return this.#options.partition.isLost ? this.#isHeld : this.#unacknowledged.isEmpty
  }

  /**
   * Call this before the brokers are asked what the log is like. Call the returned function with their
   * answer. `nowMs` is the time of `performance.now`.
   */
  beginLook(nowMs: number): (found: FoundLog) => Promise<void> {
    const isEarly = nowMs - this.#startedMs < lookMs.earlyFor
    this.#lookAtMs = nowMs + (this.#isLeaving ? againAfterMs : isEarly ? lookMs.early : lookMs.late)
    // What this owner appends during the look may not be in the answer.
    const { end } = this.#index
    const fence = this.#fences.ahead(this.#options.partition.isBegun)
    if (this.#marks === undefined) return () => Promise.resolve()
    return async (found) => {
      if (found.topicId === this.#topicId) fence(found.range.end)
      if (this.#options.partition.isLost) await this.#lookLast(found)
      else this.#look(found, end)
    }
  }

  #letGo(): void {
    if (this.#isHeld) this.#options.partition.giveBack()
    this.#isHeld = false
  }

  /** Returns what this owner can't deliver any more. Then a last look at the log is due. */
  #leave(): void {
    this.#wanted.returnAll()
    // The next owner hasn't waited for a member that the group has removed.
    if (this.#options.partition.isElsewhere) this.#letGo()
    if (!this.#isLeaving) this.#lookAtMs = 0
    this.#isLeaving = true
  }

  /** Looks for void records, which the next owner couldn't tell from others. */
  async #lookLast({ topicId, range: { end } }: FoundLog): Promise<void> {
    if (topicId === this.#topicId) this.#knownEnd = Math.max(this.#knownEnd, end)
    this.#readOn()
    await this.#untilRead()
    await this.#marks?.flush()
    this.#letGo()
  }

  async #untilRead(): Promise<void> {
    while (this.#reading !== undefined) await this.#reading
  }

  /**
   * Writes the marks that are due, also those that would only save the next owner time. From then on, the
   * partition may have another owner.
   */
  async flush(): Promise<void> {
    this.#wanted.returnAll()
    await this.#untilRead()
    this.#sealRead()
    const length = this.#index.end % blockSize
    if (length > 0 && this.#index.undone > 0)
      this.#marks?.sealed(Math.floor(this.#index.end / blockSize), new Map(this.#sequences))
    await this.#marks?.flush()
    this.#letGo()
  }

  /** Ends the tenure. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the unit has another owner'))
    this.#options.pieces.dropAll(this.#options.unit)
    await this.flush()
    this.#marks?.close()
  }

  /** Indexes the first records by the marks of earlier owners, up to the first block without a mark. */
  #pushKnown(marks: ReadonlyMap<number, OwnersMark>, end: number): void {
    for (;;) {
      const number = Math.floor(this.#index.end / blockSize)
      const mark = marks.get(number)
      if (mark === undefined) return
      let passed = this.#index.end % blockSize
      for (const [code, length] of mark.runs) {
        const skipped = Math.min(passed, length)
        passed -= skipped
        const count = Math.min(length - skipped, end - this.#index.end)
        if (count > 0) this.#add(code, count)
      }
      for (const [writer, sequence] of mark.sequences)
        this.#sequences.set(writer, Math.max(sequence, this.#sequences.get(writer) ?? 0))
      if (Math.floor(this.#index.end / blockSize) === number) return
    }
  }

  #acknowledged(offset: number, sequence: number, code: number): void {
    if (this.#marks === undefined) return
    if (offset < this.#index.end) {
      // The index has the record if it was read before its acknowledgement came. Otherwise the record is in
      // the place of another one, which an unclean election has lost.
      if (sequence > (this.#sequences.get(this.#writer) ?? 0)) this.#isRewritten(offset)
      return
    }
    if (this.#reading === undefined && offset === this.#index.end) {
      this.#sequences.set(this.#writer, sequence)
      this.#times.add(offset, Date.now())
      this.#add(code, 1)
      return
    }
    this.#knownEnd = Math.max(this.#knownEnd, offset + 1)
    this.#readOn()
  }

  /** Says that the log has other records from `at` on than this owner knows. */
  #isRewritten(at: number): void {
    this.#options.partition.isOtherLog({ at, from: this.#index.end, reason: 'shorter' })
  }

  #add(code: number, count: number): void {
    const isFirst = code > 0 && this.#index.untakenOf(code) === 0
    for (let left = count; left > 0;) {
      const part = Math.min(left, blockSize - (this.#index.end % blockSize))
      if (code === 0) {
        this.#index.skip(part)
        this.#times.skip(part)
      } else this.#index.push(code, part)
      left -= part
      if (this.#index.end % blockSize === 0) this.#seal(this.#index.end / blockSize - 1)
    }
    if (isFirst && this.#marks !== undefined) this.#options.onWaiting(code)
  }

  #seal(block: number): void {
    const sequences = new Map(this.#sequences)
    if (this.#marks === undefined) this.#unsealed.set(block, sequences)
    else this.#marks.sealed(block, sequences)
  }

  /** Marks the full blocks that were read when the tenure began. */
  #sealRead(): void {
    if (this.#marks === undefined) return
    for (const [block, sequences] of this.#unsealed) this.#marks.sealed(block, sequences)
    this.#unsealed.clear()
  }

  #readOn(): void {
    if (this.#reading !== undefined || this.#index.end >= this.#knownEnd) return
    this.#reading = this.#readUntilKnown().finally(() => {
      this.#reading = undefined
      if (!this.#stopping.signal.aborted) this.#readOn()
    })
  }

  async #readUntilKnown(): Promise<void> {
    const { unit, log } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted && this.#index.end < this.#knownEnd) {
      try {
        await this.#read()
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error, unit }, 'the queue of a unit can not be read, trying again')
        await delay(againAfterMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Indexes the records from the end of the index to the present end of the log. */
  async #read(): Promise<void> {
    const { unit, topic, reader } = this.#options
    const { signal } = this.#stopping
    // Appends that are acknowledged during the reading may lie behind the end that it has asked for.
    const end = this.#knownEnd
    for await (const records of reader.readWhole({ topic, partition: unit, from: this.#index.end, signal }))
      for (const record of records) this.#see(record)
    // The offsets at the end may have no records, for example because of a transaction.
    if (this.#index.end < end) this.#add(0, end - this.#index.end)
  }

  #see({ offset, headers, timestampMs, leaderEpoch = -1 }: WholeRecord): void {
    if (offset < this.#index.end) return
    if (offset > this.#index.end) this.#add(0, offset - this.#index.end)
    const { writer, sequence, queueClass } = parseQueued(headerText(headers, queuedHeader))
    const isRepeat = writer !== '' && sequence <= (this.#sequences.get(writer) ?? 0)
    if (isRepeat) {
      // The acknowledgement of the first copy was lost, so its writer appended the record again.
      this.#add(0, 1)
      return
    }
    if (writer !== '') this.#sequences.set(writer, sequence)
    const message = writer === this.#writer ? undefined : queuedMessage(headers, queueClass)
    if (message !== undefined && this.#isVoid({ offset, leaderEpoch }, message, tenureOf(writer))) {
      this.#add(0, 1)
      return
    }
    this.#times.add(offset, timestampMs)
    this.#add(this.#options.owners.codeOf(headerText(headers, 'destination-id') ?? '', queueClass), 1)
  }

  /** Notes a record of another owner. Returns true if it is void. */
  #isVoid(place: PlaceInLog, message: QueuedMessage, by: Tenure | undefined): boolean {
    if (this.#void.has(place.offset)) return true
    const isVoid = this.#fences.isVoid(place.offset, message, by)
    if (isVoid && this.#marks === undefined) this.#unmarked.push(place)
    else if (isVoid) this.#marks?.voided(place)
    else this.before.note(message, this.#fences.isCertain(by))
    return isVoid
  }

  #look({ topicId, range: { start, end } }: FoundLog, knownEnd: number): void {
    if (this.#stopping.signal.aborted || !this.#unacknowledged.isEmpty || this.#reading !== undefined) return
    if (topicId !== this.#topicId || end < knownEnd) {
      const reason = topicId === this.#topicId ? 'shorter' : 'recreated'
      const at = reason === 'shorter' ? end : start
      this.#options.partition.isOtherLog({ at, from: this.#index.end, reason })
      return
    }
    this.#old.forget(this.#index, start)
    void this.#old.expire(this.#index)
    this.#knownEnd = Math.max(this.#knownEnd, end)
    this.#readOn()
  }

  #hand(offset: number, code: number, found: WholeRecord | undefined): void {
    if (found === undefined) {
      this.#settle(offset, undefined)
      this.#options.onLost(1)
      return
    }
    const { partition, take, drop, owners } = this.#options
    const meaning = this.#drops.meaningOf(offset, code, found.timestampMs)
    const give = meaning === 'given up' ? drop : take
    if (partition.isLost || meaning === 'later') this.#return(offset)
    else give(this.#held(found), found, owners.classOf(code))
  }

  #held(record: WholeRecord): HeldRecord {
    const { offset, leaderEpoch } = record
    return heldWaiting(this.#options, record, {
      settle: () => this.#settle(offset, leaderEpoch),
      giveBack: () => this.#return(offset),
    })
  }

  #settle(offset: number, leaderEpoch: number | undefined): void {
    this.#index.finishTaken(offset)
    this.#marks?.done(offset, leaderEpoch)
    if (this.#drops.forget(offset)) this.#dropOn()
  }

  /** Leaves a taken record in the queue. */
  #return(offset: number): void {
    const { partition } = this.#options
    this.#drops.forget(offset)
    this.#index.putBack(offset)
    partition.giveBack()
  }
}
