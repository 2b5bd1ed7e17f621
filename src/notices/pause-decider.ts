import { type Board, hookKey, type SeenHook } from './board.ts'
import type { Notice } from './notice.ts'
import { toldKey } from './notice-record.ts'
import type { SeenClock } from './pause-book.ts'
import type { Gone, GoneRecord } from './gone-record.ts'
import type { Pause, PauseRecord } from './pause-record.ts'

/** The fields of a destination that the decision about automatic pauses needs. */
export type PausableDestination = {
  readonly state: 'on' | 'off' | 'paused' | 'auto_paused'
  readonly hookIds: readonly string[]
  /** The present contents of the hooks that may count as gone after a 410, by their ids. */
  readonly contents: ReadonlyMap<string, string>
  /** The digest of the destination's URLs, which changes when a URL changes. */
  readonly urls: string
  /**
   * The destination is paused automatically after all of its URLs have failed for this time, in milliseconds.
   * 0: it is never paused automatically.
   */
  readonly autoPauseMs: number
}

export type PauseTerms = {
  /** Reports that are older than this, in milliseconds, are ignored. */
  readonly staleMs: number
  /**
   * A decider pauses a destination only after it has decided without a gap for this time, in milliseconds.
   */
  readonly steadyMs: number
  /** True if a hook that refuses everything counts as failing. */
  readonly refusalsFail?: boolean
}

export type PauseSituation = {
  /** The present time, in epoch milliseconds. */
  readonly nowMs: number
  /** False while Sluice, Kafka or the catalog has a problem. Failures during such a time don't count. */
  readonly isSound: boolean
  readonly destinationOf: (destinationId: string) => PausableDestination | undefined
}

/**
 * A failure clock says since when all URLs of a destination have failed. If no record of a clock was written
 * for this time, in milliseconds, the clock becomes void. In that time, no process has watched the URLs, so
 * they may have worked.
 */
const clockKeptMs = 3_600_000
/** If the record of a failure clock has this age, in milliseconds, it is written again. */
const clockRenewedMs = clockKeptMs / 4
/**
 * If there are too many clocks for one decision, clocks whose records are older than this, in milliseconds,
 * come first, so that they don't become void. Then come destinations without a clock, and then all other
 * clocks.
 */
const clockUrgentMs = 3 * clockRenewedMs
/** Limit on the records of one decision. Further records wait for the next decision. */
const mostAtOnce = 200

/**
 * Decides which destinations are paused automatically, and when an automatic pause is over. Each decision is
 * written to the topic `notices` before it takes effect, so that another decider can continue from there.
 *
 * The duration of a failure is measured only by the clock of the process that decides. So a wrong clock in
 * another process can't cause a pause.
 */
export class PauseDecider {
  readonly #terms: PauseTerms
  /**
   * The time since which this process has decided without a gap and without a problem of Sluice, Kafka or the
   * catalog.
   */
  #steadySinceMs: number | undefined
  #decidedMs = Number.NEGATIVE_INFINITY

  constructor(terms: PauseTerms) {
    this.#terms = terms
  }

  /** Returns the records that have to be written. Pauses and ends of pauses come first. */
  decide(board: Board, situation: PauseSituation): readonly PauseRecord[] {
    const { nowMs, isSound, destinationOf } = situation
    // A clock that was set back counts as a gap, because it isn't known how long ago the last decision was.
    const isGap = nowMs < this.#decidedMs || nowMs - this.#decidedMs > this.#terms.staleMs
    this.#decidedMs = nowMs
    if (!isSound) this.#steadySinceMs = undefined
    else if (isGap || this.#steadySinceMs === undefined) this.#steadySinceMs = nowMs
    const failing = board.failingForPauses(nowMs - this.#terms.staleMs)
    const { known } = board.pauses
    const subjects = [...failing.values(), ...known, ...board.pauses.knownGone]
    const ids = new Set(subjects.map(({ destinationId }) => destinationId))
    const removed = known.flatMap(({ kind, destinationId }): readonly PauseRecord[] =>
      destinationOf(destinationId) === undefined ? [{ kind, destinationId, content: undefined }] : [],
    )
    const decided = [...ids].flatMap((destinationId): readonly PauseRecord[] => {
      const destination = destinationOf(destinationId)
      if (destination === undefined) return []
      const gone = goneOf(board, destinationId, destination)
      const asked = destination.hookIds.filter((hookId) => !gone.has(hookId))
      const hooks = asked.map((hookId) => failing.get(hookKey({ destinationId, hookId })))
      const failures = hooks.every((hook) => hook !== undefined) ? hooks : undefined
      const allGone = asked.length === 0 ? [...gone.values()] : undefined
      const record = this.#about({ ...destination, destinationId, failures, allGone, board, nowMs, isSound })
      return record === undefined ? [] : [record]
    })
    const [clocks, first] = [decided.filter(isClock), decided.filter((record) => !isClock(record))]
    return [...first, ...removed, ...byUrgency(clocks, board, nowMs)].slice(0, mostAtOnce)
  }

  #about(subject: Subject): PauseRecord | undefined {
    const { destinationId, state, autoPauseMs, allGone, board, nowMs, isSound } = subject
    const pause = board.pauses.pauseOf(destinationId)
    if (pause !== undefined && isOver(pause, subject)) {
      const content = { atMs: nowMs, by: 'the catalog', cause: 'catalog' } as const
      return { kind: 'resumed', destinationId, content }
    }
    const isTried = state !== 'off' && state !== 'paused'
    if (pause === undefined && allGone !== undefined)
      return isTried ? pausedAsGone(subject, allGone) : undefined
    if (pause === undefined && autoPauseMs > 0 && isTried)
      return isSound ? this.#aboutClock(subject) : undefined
    const isTimed = board.pauses.clock(destinationId) !== undefined
    return isTimed ? { kind: 'clock', destinationId, content: undefined } : undefined
  }

  /**
   * Starts, renews or ends the failure clock of a destination, or pauses the destination. Call this only for
   * a destination that may be paused automatically and isn't paused.
   */
  #aboutClock({
    destinationId,
    urls,
    autoPauseMs,
    failures,
    board,
    nowMs,
  }: Subject): PauseRecord | undefined {
    const timed = (since: number): PauseRecord => ({
      kind: 'clock',
      destinationId,
      content: { sinceMs: since, urls },
    })
    const clock = board.pauses.clock(destinationId)
    const resumedMs = board.pauses.resumption(destinationId)?.seenMs ?? 0
    if (clock === undefined || isVoid(clock, { nowMs, resumedMs, urls })) {
      const haveFailedSince = failures?.every(({ lastFailedMs }) => lastFailedMs > resumedMs) === true
      return haveFailedSince ? timed(nowMs) : undefined
    }
    const { sinceMs, answeredMs, seenMs } = clock
    if (answeredMs > sinceMs)
      return failures === undefined ? { kind: 'clock', destinationId, content: undefined } : timed(answeredMs)
    if (nowMs - sinceMs >= autoPauseMs && this.#isSure(failures, nowMs)) {
      const lastOutcome = lastOutcomeOf(failures)
      const content = { sinceMs, atMs: nowMs, urls, lastOutcome, readTo: board.position }
      return { kind: 'paused', destinationId, content }
    }
    return seenMs <= nowMs && nowMs - seenMs < clockRenewedMs ? undefined : timed(sinceMs)
  }

  /**
   * Returns true if this process has decided for at least `steadyMs` without a gap or a problem, and if each
   * hook of the destination has failed within this time. Earlier failures don't count, because Sluice itself
   * may have had a problem when they happened.
   */
  #isSure(failures: Subject['failures'], nowMs: number): failures is readonly SeenHook[] {
    const sinceMs = this.#steadySinceMs
    return (
      sinceMs !== undefined &&
      nowMs - sinceMs >= this.#terms.steadyMs &&
      failures?.every(({ lastFailedMs }) => lastFailedMs >= sinceMs) === true
    )
  }
}

/**
 * A destination, with the values that a decision about it needs. `failures`: the failures of the
 * destination's hooks; `undefined` if not all of its hooks fail.
 */
type Subject = PausableDestination &
  Pick<PauseSituation, 'nowMs' | 'isSound'> & {
    readonly destinationId: string
    readonly failures: readonly SeenHook[] | undefined
    /** The records about the destination's hooks, if all of them are gone. */
    readonly allGone: readonly Gone[] | undefined
    readonly board: Board
  }

/** Returns the hooks of a destination that are gone, with their present content. */
function goneOf(
  { pauses }: Board,
  destinationId: string,
  { contents }: PausableDestination,
): ReadonlyMap<string, Gone> {
  const gone = [...pauses.goneOf(destinationId)]
  return new Map(gone.filter(([hookId, { content }]) => contents.get(hookId) === content))
}

/** Returns true if an edit of the catalog has ended a pause. */
function isOver(pause: Pause, { allGone, autoPauseMs, urls }: Subject): boolean {
  return pause.cause === 'gone' ? allGone === undefined : autoPauseMs === 0 || pause.urls !== urls
}

/** The record of a pause that is in force already, because all hooks are gone. It is there to be told. */
function pausedAsGone({ destinationId, urls, board, nowMs }: Subject, allGone: readonly Gone[]): PauseRecord {
  const first = allGone.toSorted((one, other) => one.atMs - other.atMs)[0]
  const { atMs: sinceMs = nowMs, lastOutcome = '' } = first ?? {}
  const content = { sinceMs, atMs: nowMs, urls, lastOutcome, readTo: board.position, cause: 'gone' } as const
  return { kind: 'paused', destinationId, content }
}

/**
 * Returns the records that remove what isn't needed any more about gone hooks: those of removed, edited or
 * resumed hooks.
 */
export function goneToForget(
  board: Board,
  destinationOf: PauseSituation['destinationOf'],
): readonly GoneRecord[] {
  return board.pauses.knownGone.flatMap(({ destinationId, hookId }): readonly GoneRecord[] => {
    const destination = destinationOf(destinationId)
    const isNeeded = destination !== undefined && goneOf(board, destinationId, destination).has(hookId)
    return isNeeded ? [] : [{ destinationId, hookId, content: undefined }]
  })
}

/**
 * Returns true if a failure clock is void, for one of these reasons:
 *
 * - Its last record is too old.
 * - The URLs have changed since it started.
 * - It started before the end of the last pause.
 * - It starts in the future, because the clock of the machine was set back. A later success could then seem
 *   to be earlier.
 */
function isVoid(
  clock: SeenClock,
  { nowMs, resumedMs, urls }: { readonly nowMs: number; readonly resumedMs: number; readonly urls: string },
): boolean {
  const isTimely = nowMs - clock.seenMs <= clockKeptMs && clock.sinceMs <= nowMs
  return !isTimely || clock.sinceMs <= resumedMs || clock.urls !== urls
}

/**
 * Sorts failure clocks so that the most urgent clock comes first. Without this order, if very many
 * destinations fail, the clocks that are renewed could keep new clocks from ever being written.
 */
function byUrgency(clocks: readonly PauseRecord[], board: Board, nowMs: number): readonly PauseRecord[] {
  const seenMs = ({ destinationId }: PauseRecord): number => {
    const clock = board.pauses.clock(destinationId)
    const isAlive = clock !== undefined && nowMs - clock.seenMs <= clockKeptMs
    return isAlive ? clock.seenMs : nowMs - clockUrgentMs
  }
  if (clocks.length <= mostAtOnce) return clocks
  const urgencies = new Map(clocks.map((clock) => [clock, seenMs(clock)]))
  return clocks.toSorted((one, other) => (urgencies.get(one) ?? 0) - (urgencies.get(other) ?? 0))
}

function isClock({ kind }: PauseRecord): boolean {
  return kind === 'clock'
}

function lastOutcomeOf(failures: readonly SeenHook[]): string {
  const [last] = failures.toSorted((one, other) => other.lastFailedMs - one.lastFailedMs)
  return last?.lastOutcome ?? ''
}

/**
 * Returns two lists. `notices` has new notices about pauses and ends of pauses. If `isWanted` is false, it is
 * empty. `over` has records for the topic. Each of these removes the record of a pause that is over and needs
 * no notice any more.
 */
export function noticesOfPauses(
  board: Board,
  isWanted: boolean,
): { readonly notices: readonly Notice[]; readonly over: readonly PauseRecord[] } {
  const notices: Notice[] = []
  const over: PauseRecord[] = []
  for (const { kind, destinationId } of board.pauses.known) {
    if (kind !== 'paused') continue
    const pause = board.pauses.lastPause(destinationId)
    const resumption = board.pauses.resumption(destinationId)
    if (pause === undefined) continue
    const { sinceMs, atMs, lastOutcome } = pause
    const told = board.told(toldKey('auto_paused', destinationId))?.notice
    const isTold = told?.kind === 'auto_paused' && told.atMs === atMs
    if (board.pauses.pauseOf(destinationId) !== undefined || resumption === undefined) {
      if (isWanted && !isTold)
        notices.push({ kind: 'auto_paused', destinationId, sinceMs, atMs, lastOutcome })
      continue
    }
    const end = board.told(toldKey('resumed', destinationId))?.notice
    const isEndTold = end?.kind === 'resumed' && end.sinceMs === atMs
    if (isWanted && isTold && !isEndTold) {
      const { cause } = resumption
      notices.push({ kind: 'resumed', destinationId, sinceMs: atMs, atMs: resumption.atMs, cause })
    } else over.push({ kind: 'paused', destinationId, content: undefined })
  }
  return { notices, over }
}
