/** The versions of each request that a broker knows, by its key. */
export type KnownVersions = ReadonlyMap<number, { readonly lowest: number; readonly highest: number }>

/** A request that Sluice makes, and the versions of it that it can make. */
type Spoken = {
  readonly apiKey: number
  readonly name: string
  readonly lowest: number
  readonly highest: number
}

/**
 * What a broker has to know. The highest are those of kafkajs 2.2.4; the lowest those without which a promise
 * is not kept: record batches with headers (Produce 3, Fetch 4), no topic made by asking for it (Metadata 4),
 * commits that remember (OffsetCommit 2).
 */
const spoken: readonly Spoken[] = [
  { apiKey: 0, name: 'Produce', lowest: 3, highest: 7 },
  { apiKey: 1, name: 'Fetch', lowest: 4, highest: 11 },
  { apiKey: 2, name: 'ListOffsets', lowest: 1, highest: 3 },
  { apiKey: 3, name: 'Metadata', lowest: 4, highest: 6 },
  { apiKey: 8, name: 'OffsetCommit', lowest: 2, highest: 5 },
  { apiKey: 9, name: 'OffsetFetch', lowest: 1, highest: 4 },
  { apiKey: 10, name: 'FindCoordinator', lowest: 0, highest: 2 },
  { apiKey: 11, name: 'JoinGroup', lowest: 0, highest: 5 },
  { apiKey: 12, name: 'Heartbeat', lowest: 0, highest: 3 },
  { apiKey: 13, name: 'LeaveGroup', lowest: 0, highest: 3 },
  { apiKey: 14, name: 'SyncGroup', lowest: 0, highest: 3 },
  { apiKey: 15, name: 'DescribeGroups', lowest: 0, highest: 2 },
]

/** The oldest and the newest Apache Kafka that the tests run on. */
export const supportedKafka = { oldest: '3.3', newest: '4.3' } as const

/** What keeps Sluice from speaking with such a broker, in a line; `undefined` where nothing does. */
export function versionProblem(known: KnownVersions): string | undefined {
  const missing = spoken.flatMap(({ apiKey, name, lowest, highest }) => {
    const versions = known.get(apiKey)
    if (versions === undefined) return [{ isTooOld: true, text: `it has no ${name}` }]
    if (versions.highest < lowest)
      return [{ isTooOld: true, text: `it knows ${name} up to ${versions.highest}, ${lowest} is needed` }]
    if (versions.lowest > highest)
      return [
        {
          isTooOld: false,
          text: `it knows ${name} from ${versions.lowest} on, ${highest} is the last that is spoken`,
        },
      ]
    return []
  })
  if (missing.length === 0) return undefined
  const what = missing.every(({ isTooOld }) => isTooOld) ? 'old' : 'new'
  const { oldest, newest } = supportedKafka
  return `the broker is too ${what} (${missing.map(({ text }) => text).join('; ')}): Apache Kafka ${oldest} to ${newest} is supported`
}
