/** The numbers of records and bytes of a topic that is copied. */
export type TopicCount = {
  readonly topic: string
  readonly copy: string
  /**
   * The number of records that are written to the copy. `bytes` is the size of their keys, values and
   * headers.
   */
  readonly records: number
  readonly bytes: number
  /** An upper bound of the number of records that still have to be delivered or processed. */
  readonly waiting: number
}

export type Plan = {
  readonly change: Change
  readonly counts: readonly TopicCount[]
  /** The approximate number of users with a state. */
  readonly users: number
  /** The topics that get more partitions. */
  readonly extended: readonly string[]
  readonly replication: number
  /** The rights that the command needs, such as `READ on Topic sluice.memberships`. */
  readonly rights: readonly string[]
  readonly minutesOfRefresh: number
}

/**
 * The speed that `sluice topics grow` reaches at least when the brokers are near, in records per second. The
 * command prints the actual speed while it runs.
 */
const recordsPerSecond = 15_000
const bytesPerSecond = 10 * 1024 ** 2
/** The seconds that it takes to start the command, to create topics and to write commits. */
const overheadSeconds = 20

function secondsOf(counts: readonly TopicCount[]): number {
  const records = sumOf(counts, ({ records: one }) => one)
  const bytes = sumOf(counts, ({ bytes: one }) => one)
  return Math.ceil(overheadSeconds + Math.max(records / recordsPerSecond, bytes / bytesPerSecond))
}

/** Returns lines that describe what `sluice topics grow` will do. */
export function linesOf({
  change,
  counts,
  users,
  extended,
  replication,
  rights,
  minutesOfRefresh,
}: Plan): string[] {
  const { from, to } = change
  const bytes = sumOf(counts, ({ bytes: one }) => one)
  return [
    `grow       from ${from.partitions} to ${to.partitions} partitions, to generation ${to.generation} of the topics that only Sluice writes`,
    ...counts.map(
      ({ topic, copy, records, bytes: size, waiting }) =>
        `copy       ${topic} to ${copy}: ${grouped(records)} records, ${inBytes(size)}, ${grouped(waiting)} of them wait for their delivery`,
    ),
    `users      about ${grouped(users)} with a state`,
    ...extended.map((topic) => `partitions ${topic}: ${to.partitions}, in place`),
    `disk       brokers ${inBytes(bytes * replication)} more (${replication} copies, uncompressed) until \`sluice topics grow --clean\`; workers read their state again`,
    `time       about ${inTime(secondsOf(counts))}, at ${grouped(recordsPerSecond)} records or ${inBytes(bytesPerSecond)} a second; all workers are stopped as long`,
    `upstream   may go on; no sync of an audience from now until the workers run again: its parts are for ${from.partitions} partitions, and would end in the dead letters`,
    `upstream   producers see the new partitions within ${minutesOfRefresh} minutes by themselves (metadata.max.age.ms); who counts them for syncs has to ask again`,
    'upstream   events of one user from before and after may be delivered in either order until the backlog is done: stop producers as long as workers if that matters',
    ...rights.map((right) => `right      ${right}`),
  ]
}

function sumOf(counts: readonly TopicCount[], of: (count: TopicCount) => number): number {
  return counts.reduce((sum, count) => sum + of(count), 0)
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

function inBytes(bytes: number): string {
  let size = bytes
  let at = 0
  for (; size >= 1024 && at < units.length - 1; at++) size /= 1024
  return `${at === 0 ? size : size.toFixed(1)} ${units[at]}`
}

export function inTime(seconds: number): string {
  if (seconds < 90) return `${seconds} s`
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} minutes` : `${(seconds / 3_600).toFixed(1)} hours`
}

/** A layout: the number of units, and the generation of the topics that hold the units' data. */
export type Layout = { readonly partitions: number; readonly generation: number }

/** A change of layout, to more partitions. */
export type Change = { readonly from: Layout; readonly to: Layout }
