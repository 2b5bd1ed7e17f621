import type { Logger } from 'pino'
import type { OnClockSkew } from '../kafka/clock-skew.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'

/**
 * The difference from which a clock is reported, in milliseconds. Receivers accept signatures of five
 * minutes.
 */
const reportedMs = 30_000

/**
 * Creates the function that reports how far the clock of this process is ahead of the brokers' clocks: always
 * as a metric, and in the log when the difference becomes too large, and when it no longer is.
 */
export function createClockReport({
  metrics,
  log,
}: {
  metrics: Pick<CommonMetrics, 'clockSkew'>
  log: Pick<Logger, 'info' | 'warn'>
}): OnClockSkew {
  let isReported = false
  return (aheadMs) => {
    metrics.clockSkew.set(aheadMs / 1_000)
    const isWrong = Math.abs(aheadMs) >= reportedMs
    if (isWrong === isReported) return
    isReported = isWrong
    const seconds = Math.round(Math.abs(aheadMs) / 1_000)
    if (isWrong) log.warn({ seconds }, aheadMs > 0 ? isAhead : isBehind)
    else log.info('the clock agrees with the clocks of the brokers again')
  }
}

const consequences =
  'retries come at wrong times, and receivers may refuse signatures: set the clock of whichever is wrong (NTP)'
const isAhead = `the clock of this machine is ahead of the clock of a broker: ${consequences}`
const isBehind = `the clock of this machine is behind the clock of a broker: ${consequences}`
