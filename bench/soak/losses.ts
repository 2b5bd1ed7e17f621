import { readTopic } from '../support/topic-reader.ts'
import { destinationOf, type Stream } from '../support/streams.ts'
import type { Report } from './customers-process.ts'
import { switchedDestination, takesAll } from './fleet.ts'

/** The numbers of messages that have not arrived at their receivers. */
export type Losses = {
  /**
   * Messages to destinations that accept all requests. They count as missing even if they are dead letters.
   */
  healthyMissing: number
  /** The dead letters among the messages of `healthyMissing`: their number by reason. */
  healthyDead: ReadonlyMap<string, number>
  /** Messages to other destinations that are in the dead letters, as they should be. */
  dead: number
  /** Messages to the destination that was off at times. They aren't in the dead letters either. */
  notRouted: number
  /** Messages to other destinations that are nowhere. */
  lost: number
}

/** Looks for each produced message among the accepted ones and in the dead letters. */
export async function findLosses({
  brokers,
  deadLetters,
  stream,
  messages,
  accepted,
}: {
  brokers: readonly string[]
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
