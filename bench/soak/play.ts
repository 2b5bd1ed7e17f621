import { setTimeout as delay } from 'node:timers/promises'
import { monotonicUs } from '../support/clock.ts'
import type { Customers } from './customers-process.ts'
import type { Fault, TimedFault } from './faults.ts'
import type { CatalogState } from './fleet.ts'
import { quarters } from './result.ts'

/** Returns a function that carries out a fault. Restarted receivers are down for `downMs`. */
export function actor({
  customers,
  writeCatalog,
  downMs,
}: {
  customers: Customers
  writeCatalog: (state: CatalogState) => void
  downMs: number
}): (fault: Fault) => void {
  const state: CatalogState = { isOff: false, secret: 0 }
  return (fault) => {
    switch (fault.kind) {
      case 'restart':
        customers.restart(fault.destinations, downMs)
        return
      case 'turn off':
        state.isOff = true
        break
      case 'turn on':
        state.isOff = false
        break
      case 'change secret':
        state.secret = state.secret === 0 ? 1 : 0
        break
    }
    writeCatalog(state)
  }
}

/**
 * Carries out the faults at their times in each quarter, by the clock of `monotonicUs`, until the end or an
 * abort.
 */
export async function playFaults({
  startUs,
  quarterS,
  faults,
  act,
  signal,
}: {
  startUs: number
  quarterS: number
  faults: readonly TimedFault[]
  act: (fault: Fault) => void
  signal: AbortSignal
}): Promise<void> {
  for (let quarter = 0; quarter < quarters; quarter++) {
    for (const { atS, fault } of faults) {
      const dueUs = startUs + (quarter * quarterS + atS) * 1_000_000
      await delay(Math.max(0, (dueUs - monotonicUs()) / 1_000), undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      act(fault)
    }
  }
}
