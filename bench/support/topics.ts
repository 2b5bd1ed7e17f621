import { join, resolve } from 'node:path'
import type { Admin } from 'kafkajs'
import { BenchmarkFailure } from './failure.ts'
import { plainKafka } from './plain-kafka.ts'
import { startSender } from './sender-process.ts'

export const sluiceMain = resolve(import.meta.dirname, '../../src/main.ts')

/** Makes the topics that a worker with these variables needs, with the command that an operator would use. */
export async function applyTopics(folder: string, variables: Record<string, string>): Promise<void> {
  const apply = startSender([sluiceMain, 'topics', 'apply'], {
    outputFile: join(folder, 'topics.log'),
    variables,
  })
  const exitCode = await apply.ended
  if (exitCode !== 0) throw new BenchmarkFailure(`sluice topics apply failed:\n${apply.output()}`)
}

/**
 * Returns the number of records in the topics that begin with `prefix` and for which `isCounted` returns
 * true.
 */
export async function countRecords(
  brokers: readonly string[],
  prefix: string,
  isCounted: (topic: string) => boolean = () => true,
): Promise<number> {
  return withAdmin(brokers, async (admin) => {
    let count = 0
    for (const topic of await topicsOf(admin, prefix)) {
      if (!isCounted(topic)) continue
      for (const { low, high } of await admin.fetchTopicOffsets(topic)) count += Number(high) - Number(low)
    }
    return count
  })
}

export async function removeTopics(brokers: readonly string[], prefix: string): Promise<void> {
  await withAdmin(brokers, async (admin) => admin.deleteTopics({ topics: await topicsOf(admin, prefix) }))
}

async function topicsOf(admin: Admin, prefix: string): Promise<string[]> {
  return (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
}

async function withAdmin<T>(brokers: readonly string[], work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}
