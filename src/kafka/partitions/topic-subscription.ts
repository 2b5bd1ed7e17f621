/** A topic that the group reads. */
export type TopicSubscription = {
  topic: string
  /** How long a record waits after it was appended, in milliseconds. */
  waitMs: number
  /** If true, a partition doesn't start before `prepare` has resolved for the partition's unit. */
  needsState?: boolean
  /**
   * If false, commits contain only the watermark, without the settled offsets above it. The next owner then
   * takes all records above the watermark again. The advantage is that the partition has no window that could
   * become full and stop fetching.
   */
  hasWindow?: false
  /**
   * If true, commits also say which settled records went nowhere (`HeldRecord.passOn`). The next owner then
   * knows which records were passed on (`ConsumerOptions.onInherited`).
   */
  notesPassedOn?: true
  /**
   * If true, the group only assigns the topic's partitions and commits them. The worker reads them itself, in
   * any order, and says how far they are done (`GroupConsumer.pulled`).
   */
  isPulled?: true
}
