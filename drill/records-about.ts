import { readTopic } from '../bench/support/topic-reader.ts'

/** The topics with records about users of audiences. */
const topics = ['audience-changes', 'deletions', 'memberships', 'backfills', 'dead-letters']

/**
 * Returns all records about the users, one line each. The lines help to find out why a value is wrong. Parts
 * of syncs that name a user are among them.
 */
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
