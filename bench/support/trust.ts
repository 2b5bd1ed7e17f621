import type { Produced } from './producer-process.ts'
import type { Progress, RecorderReport } from './recorder-process.ts'

/** Above it, what is measured is the servers of the customers. */
const maxUtilization = 0.85

/** Says why the figures of a run can't be trusted; `undefined` when they can. */
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
  /** A producer that is behind its clock makes another traffic than the one that was asked for; for its p99. */
  maxLateMs: number
  signs: boolean
  /** Whether messages to the others may be missing, or come again. */
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
