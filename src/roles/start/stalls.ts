import type { Logger } from 'pino'
import { Listeners } from '../../async/listeners.ts'
import type { WorkerState } from './readiness.ts'

/**
 * The reasons why a worker starts no delivery at present: Kafka takes no records, the proxy can't be used, or
 * the worker has not heard from its group for a session timeout.
 */
export class Stalls implements WorkerState {
  isStopping = false
  readonly #log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly #listeners = new Listeners<[isStalled: boolean]>()
  #stalledBy = ''
  #unreachableBy = ''
  #isSilent = false

  constructor(log: Pick<Logger, 'info' | 'warn' | 'error'>) {
    this.#log = log
  }

  /** Calls `listener` after each change, and at once if the worker is stalled already. */
  onChange(listener: (isStalled: boolean) => void): void {
    this.#listeners.add(listener)
    if (this.isStalled) listener(true)
  }

  get stalledBy(): string {
    return this.#stalledBy
  }

  get unreachableBy(): string {
    return this.#unreachableBy
  }

  get isStalled(): boolean {
    return this.#stalledBy !== '' || this.#unreachableBy !== '' || this.#isSilent
  }

  setUnwritable(isUnwritable: boolean, reason: string): void {
    this.#stalledBy = isUnwritable ? reason : ''
    this.#report()
    if (isUnwritable)
      this.#log.error({ reason }, 'Kafka does not accept writes: fetching stops until it does')
    else this.#log.info('Kafka accepts writes again')
  }

  /** Remembers why hooks can't be reached. If `reason` is empty, hooks can be reached again. */
  setUnreachable(reason: string): void {
    this.#unreachableBy = reason
    this.#report()
  }

  setSilent(isSilent: boolean): void {
    this.#isSilent = isSilent
    this.#report()
    if (isSilent) this.#log.warn(outOfTouch)
    else this.#log.info('the group coordinator answers again')
  }

  #report(): void {
    this.#listeners.tell(this.isStalled)
  }
}

const outOfTouch =
  'the group coordinator has not answered for a session: this worker starts nothing until it does, since others may own its partitions'
