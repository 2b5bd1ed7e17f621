import { setTimeout as sleep } from 'node:timers/promises'
import type { Check } from './checks.ts'
import type { Customers } from './customers.ts'
import { runSluice, type Settings } from './sluice.ts'

const perSecond = 500
const arriveWithinMs = 20_000

type ReplayOptions = {
  readonly customers: Customers
  readonly settings: Settings
  readonly signal: AbortSignal
}

/**
 * Replays the dead letters of `erp`, as an operator would: looks up a message that failed, repairs the
 * server, sends the dead letters again, and looks up the message once more.
 */
export async function replayErp(options: ReplayOptions): Promise<Check[]> {
  const { customers } = options
  const messageId = [...(customers.all.get('erp')?.receiver.arrivals.keys() ?? [])].at(0) ?? ''
  const before = await findInErp(messageId, 'dead', options)
  customers.mendErp()
  const replayed = await replayDeadLetters(options)
  const after = await findInErp(messageId, 'delivered', options)
  const found = {
    about: 'log find',
    found: `one message that failed (sluice log find): ${before.found} before that, ${after.found} behind it`,
    faults: [...before.faults, ...after.faults],
  }
  return [replayed, found]
}

/** Time that the index of the delivery log may be behind, in milliseconds. */
const indexedWithinMs = 20_000

/**
 * Asks the delivery log what became of a message at the destination `erp`. Asks again until the log says
 * `standing`, and for `indexedWithinMs` at most.
 */
async function findInErp(
  messageId: string,
  standing: 'dead' | 'delivered',
  { settings, signal }: ReplayOptions,
): Promise<{ found: string; faults: string[] }> {
  let told = 'nothing'
  for (const untilMs = performance.now() + indexedWithinMs; performance.now() < untilMs;) {
    const lines = await runSluice(['log', 'find', messageId, '--no-payload'], settings, signal)
    told = lines.find((line) => line.startsWith('erp: '))?.slice('erp: '.length) ?? 'nothing'
    if (told === standing) return { found: told, faults: [] }
    await sleep(500, undefined, { signal })
  }
  return { found: told, faults: [`the log says of ${messageId} at erp: ${told}, and not ${standing}`] }
}

async function replayDeadLetters({ customers, settings, signal }: ReplayOptions): Promise<Check> {
  const receiver = customers.all.get('erp')?.receiver
  const selection = ['replay', 'dead-letters', '--destination', 'erp', '--json']
  const [counted = '{}'] = await runSluice([...selection, '--dry-run'], settings, signal)
  const [, ended = '{}'] = await runSluice([...selection, '--rate', String(perSecond)], settings, signal)
  const preview: { counted: { records: number } } = JSON.parse(counted)
  const job: { id: string; state: string; sent: { records: number } } = JSON.parse(ended)
  const due = preview.counted.records
  const accepted = (): number =>
    [...(receiver?.arrivals.values() ?? [])].filter((one) => one.accepted > 0).length
  for (const untilMs = performance.now() + arriveWithinMs; accepted() < due && performance.now() < untilMs;)
    await sleep(100, undefined, { signal })
  const faults: string[] = []
  if (due === 0) faults.push('it had no dead letters')
  if (job.state !== 'done' || job.sent.records !== due)
    faults.push(`the replay is ${job.state}, and sent ${job.sent.records} of ${due}`)
  if (accepted() !== due) faults.push(`${accepted()} of ${due} were taken`)
  const marked = receiver?.replayed.get(job.id) ?? 0
  if (marked < due) faults.push(`${due - marked} requests did not say X-Sluice-Replay: ${job.id}`)
  return {
    about: 'replay',
    found: `erp is mended: its ${due} dead letters were sent again (sluice replay), and all were taken`,
    faults,
  }
}
