import { setTimeout as passTime } from 'node:timers/promises'
import { say } from '../bench/support/say.ts'
import type { Played } from './play.ts'
import type { Sampling } from './samples.ts'

const everyMs = 10_000

/**
 * Prints a line every ten seconds: how much was sent and delivered, the lag, the number of workers, and the
 * faults that have begun since the last line.
 */
export function startProgress({
  startedMs,
  sampling,
  faults,
}: {
  startedMs: number
  sampling: Sampling
  faults: Played
}): { stop(): Promise<void> } {
  const stopping = new AbortController()
  async function tell(): Promise<void> {
    for (;;) {
      await passTime(everyMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      say(lineOf({ startedMs, sampling, begun: faults.tell() }))
    }
  }
  const telling = tell()
  return {
    async stop() {
      stopping.abort()
      await telling
    },
  }
}

function lineOf({
  startedMs,
  sampling,
  begun,
}: {
  startedMs: number
  sampling: Sampling
  begun: readonly string[]
}): string {
  const last = sampling.samples.at(-1)
  const lag = sampling.lags.at(-1)
  const seconds = Math.round((Date.now() - startedMs) / 1_000)
  const time = `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`
  const figures = [
    `sent ${inWords(last?.sent)}`,
    `delivered ${inWords(last?.delivered)}`,
    `lag ${inWords(lag?.records)}`,
    `workers ${last?.awake ?? '-'}`,
  ]
  return `${time}  ${figures.join('  ')}${begun.length > 0 ? `  | ${begun.join(', ')}` : ''}`
}

function inWords(count: number | undefined): string {
  return count === undefined ? '-' : count.toLocaleString('en')
}
