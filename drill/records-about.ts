import { readTopic } from '../bench/support/topic-reader.ts'

/** Where all that is known of a user of an audience comes from, and goes to. */
const topics = ['audience-changes', 'deletions', 'memberships', 'backfills', 'dead-letters']

/** All records about users, as lines to look at when their values are wrong; syncs of their audiences too. */
export async function recordsAbout(
  brokers: readonly string[],
  prefix: string,
  users: ReadonlySet<string>,
): Promise<string[]> {
  if (users.size === 0) return []
  const lines: string[] = []
  for (const topic of topics) {
    await readTopic(brokers, `${prefix}${topic}`, ({ key, value, timestamp, offset }) => {
      const text = `${String(key)} ${String(value)}`
      if (![...users].some((user) => text.includes(`"${user}"`) || String(key) === user)) return
      lines.push(`${new Date(Number(timestamp)).toISOString()} ${topic}/${offset} ${text}`)
    })
  }
  return lines
}
