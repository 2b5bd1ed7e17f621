import { setTimeout as sleep } from 'node:timers/promises'
import type { Check } from './checks.ts'
import type { Customers } from './customers.ts'
import { runSluice, type Settings } from './sluice.ts'

const perSecond = 500
const arriveWithinMs = 20_000

/** Mends the server of `erp`, and sends it its dead letters again, as an operator would. */
export async function replayErp(options: {
  readonly customers: Customers
  readonly settings: Settings
  readonly signal: AbortSignal
}): Promise<Check> {
  const { customers, settings, signal } = options
  const receiver = customers.all.get('erp')?.receiver
  customers.mendErp()
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
