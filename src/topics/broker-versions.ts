/** The lowest and highest version that a broker knows of each request, by the request's API key. */
export type KnownVersions = ReadonlyMap<number, { readonly lowest: number; readonly highest: number }>

/** A request that Sluice sends, and the versions in which Sluice can write it. */
type Spoken = {
  readonly apiKey: number
  readonly name: string
  readonly lowest: number
  readonly highest: number
  /** The lowest version in which the request can carry the instance id of a static member. */
  readonly withInstance?: number
}

/**
 * The requests that Sluice sends, with the versions in which the code of this folder writes them. A broker
 * has to know at least one of these versions of each request. The lowest versions are the first that have a
 * feature which Sluice needs:
 *
 * - Records have headers: Produce 3 and Fetch 4.
 * - A request for metadata doesn't create topics: Metadata 4.
 * - The broker's setting decides how long commits are kept: OffsetCommit 3.
 * - A member sets how long a rebalance may take: JoinGroup 2.
 */
export const spoken: readonly Spoken[] = [
  { apiKey: 0, name: 'Produce', lowest: 3, highest: 7 },
  { apiKey: 1, name: 'Fetch', lowest: 4, highest: 11 },
  { apiKey: 2, name: 'ListOffsets', lowest: 1, highest: 5 },
  { apiKey: 3, name: 'Metadata', lowest: 4, highest: 12 },
  { apiKey: 8, name: 'OffsetCommit', lowest: 3, highest: 7 },
  { apiKey: 9, name: 'OffsetFetch', lowest: 3, highest: 5 },
  { apiKey: 10, name: 'FindCoordinator', lowest: 1, highest: 2 },
  { apiKey: 11, name: 'JoinGroup', lowest: 2, highest: 5, withInstance: 5 },
  { apiKey: 12, name: 'Heartbeat', lowest: 1, highest: 3, withInstance: 3 },
  { apiKey: 13, name: 'LeaveGroup', lowest: 1, highest: 3, withInstance: 3 },
  { apiKey: 14, name: 'SyncGroup', lowest: 1, highest: 3, withInstance: 3 },
  { apiKey: 15, name: 'DescribeGroups', lowest: 1, highest: 4 },
]

/** The oldest and the newest Apache Kafka that the tests run on. */
export const supportedKafka = { oldest: '3.3', newest: '4.3' } as const

/**
 * Returns one line that says why Sluice can't work with a broker of these versions. Returns `undefined` if
 * Sluice can work with the broker. `hasInstanceId` is true if the worker joins its group as a static member.
 */
export function versionProblem(known: KnownVersions, hasInstanceId = false): string | undefined {
  const missing = spoken.flatMap((request) => faultOf(request, known, hasInstanceId) ?? [])
  if (missing.length === 0) return undefined
  const what = missing.every(({ isTooOld }) => isTooOld) ? 'old' : 'new'
  const { oldest, newest } = supportedKafka
  return `the broker is too ${what} (${missing.map(({ text }) => text).join('; ')}): Apache Kafka ${oldest} to ${newest} is supported`
}

function faultOf(
  { apiKey, name, lowest: least, highest, withInstance }: Spoken,
  known: KnownVersions,
  hasInstanceId: boolean,
): { readonly isTooOld: boolean; readonly text: string } | undefined {
  const isForInstance = hasInstanceId && withInstance !== undefined
  const lowest = isForInstance ? withInstance : least
  const versions = known.get(apiKey)
  if (versions === undefined) return { isTooOld: true, text: `it has no ${name}` }
  if (versions.highest < lowest) {
    const why = isForInstance ? ' with kafka.instanceId' : ''
    return { isTooOld: true, text: `it knows ${name} up to ${versions.highest}, ${lowest} is needed${why}` }
  }
  if (versions.lowest <= highest) return undefined
  const text = `it knows ${name} from ${versions.lowest} on, ${highest} is the last that is spoken`
  return { isTooOld: false, text }
}

/** The first version of Metadata that reports the ids of topics: Apache Kafka 2.8. */
const idsFrom = 10

/**
 * Returns one line that tells the operator which facts a broker of these versions can't report, and what
 * follows from that. Returns `undefined` if such a broker reports everything.
 */
export function versionCaution(known: KnownVersions): string | undefined {
  if ((known.get(3)?.highest ?? 0) >= idsFrom) return undefined
  return 'this Kafka reports no topic ids: a topic that is deleted and recreated under its name is noticed by its offsets alone, so stop the workers before you do that'
}
