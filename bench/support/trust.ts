import type { Produced } from './producer-process.ts'
import type { Progress, RecorderReport } from './recorder-process.ts'

/**
 * The largest busy share of the customers' servers. Above it, the servers would limit the measured sender.
 */
const maxUtilization = 0.85

/** Returns why the figures of a run can't be trusted. Returns `undefined` if they can be trusted. */
export function faultOf({
  produced,
  report,
  expected,
  planned,
  maxLateMs,
  signs,
  mayMiss,
}: {
  produced: Produced
  report: RecorderReport
  expected: Progress
  planned: number
  /**
   * The largest p99 of the producer's lateness. A producer that is later doesn't make the planned traffic.
   */
  maxLateMs: number
  signs: boolean
  /** If true, messages to destinations that aren't special may be missing or repeated. */
  mayMiss: boolean
}): string | undefined {
  const { others, signatures, unknown, utilization } = report
  const { messages, acknowledged, late, errors } = produced
  if (messages !== planned || acknowledged !== planned) {
    return `${planned} messages were to be produced, ${messages} were, ${acknowledged} acknowledged: ${errors.join('; ')}`
  }
  if (late.p99 > maxLateMs) {
    return `the producer could not keep its rate: p99 ${Math.round(late.p99)} ms late`
  }
  if (utilization > maxUtilization)
    return `the receiver was busy for ${Math.round(utilization * 100)} % of the time`
  if (unknown > 0) return `${unknown} requests with a message that was not produced`
  if (!mayMiss && (others.distinct !== expected.others || others.repeats > 0)) {
    return `${expected.others} messages, ${others.distinct} came, ${others.repeats} of them again`
  }
  if (signs && (signatures.checked === 0 || signatures.wrong > 0)) {
    return `${signatures.wrong} of ${signatures.checked} checked signatures are wrong`
  }
  return undefined
}
