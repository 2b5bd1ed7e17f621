import { readTopic } from '../support/topic-reader.ts'
import { destinationOf, type Stream } from '../support/streams.ts'
import type { Report } from './customers-process.ts'
import { switchedDestination, takesAll } from './fleet.ts'

/** What has not come to its receiver, by where it is. */
export type Losses = {
  /** Messages to destinations that take all: they are missing wherever they are. */
  healthyMissing: number
  /** Those of them that are in the dead letters: why, and how many. */
  healthyDead: ReadonlyMap<string, number>
  /** Of the others: in the dead letters, as it should be. */
  dead: number
  /** Of the one that was off at times: in the dead letters neither. */
  notRouted: number
  /** Nowhere. */
  lost: number
}

/** Compares what was produced with what was accepted and what is in the dead letters, message by message. */
export async function findLosses({
  brokers,
  deadLetters,
  stream,
  messages,
  accepted,
}: {
  brokers: readonly string[]
  /** The topic. */
  deadLetters: string
  stream: Stream
  messages: number
  accepted: Report['accepted']
}): Promise<Losses> {
  const reasons = new Map<number, string>()
  await readTopic(brokers, deadLetters, ({ headers }) => {
    const number = Number(String(headers?.['message-id']).slice(-12))
    const { attempts, reason, detail } = headers ?? {}
    reasons.set(number, `${String(reason)} after ${String(attempts)} attempts (${String(detail)})`)
  })
  const healthyDead = new Map<string, number>()
  const losses: Losses = { healthyMissing: 0, healthyDead, dead: 0, notRouted: 0, lost: 0 }
  for (let number = 0; number < messages; number++) {
    if (accepted[number] === 1) continue
    const destination = destinationOf(stream, number)
    const reason = reasons.get(number)
    if (takesAll(destination)) {
      losses.healthyMissing++
      if (reason !== undefined) healthyDead.set(reason, (healthyDead.get(reason) ?? 0) + 1)
    } else if (reason !== undefined) losses.dead++
    else if (destination === switchedDestination) losses.notRouted++
    else losses.lost++
  }
  return losses
}
