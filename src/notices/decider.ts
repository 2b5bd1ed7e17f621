import { type Board, type CountedKind, countedKinds, hookKey, type HookName, type SeenHook } from './board.ts'
import { type Notice, sumOf, urgentReasons } from './notice.ts'
import { toldKey } from './notice-record.ts'

/** The conditions under which notices are made. Times are in milliseconds. */
export type Terms = {
  /** Time for which a destination must need a backfill before a notice about this is made. */
  readonly failingAfterMs: number
  /** The window: within this time, at most one notice of a kind is made about the same subject. */
  readonly windowMs: number
  /** A notice of a kind is made when its count in a window is this high. 0: no such notice is ever made. */
  readonly least: Readonly<Record<CountedKind, number>>
  /** Reports that are older than this are ignored. */
  readonly staleMs: number
  /** Time that a hook must work without a reported failure before it counts as recovered. */
  readonly wellMs: number
  /**
   * Time for which a hook must refuse everything before a notice about this is made. 0: none is ever made.
   */
  readonly refusingAfterMs?: number
  /** The notice about the end of a secret is made this long before the end. */
  readonly secretEndingMs: number
}

/** The facts that the decider needs in addition to the board. */
export type Situation = {
  /** The present time, in epoch milliseconds. */
  readonly nowMs: number
  /**
   * Returns true if the catalog has the hook. Without a `hookId`, returns true if the catalog has the
   * destination.
   */
  readonly isKnown: (destinationId: string, hookId?: string) => boolean
  /** The destinations of the catalog that need a backfill, each with the space whose values are missing. */
  readonly behind: readonly { readonly destinationId: string; readonly spaceId: string }[]
  /** The destinations of the catalog whose secret has an end, each with the time of this end. */
  readonly secrets: readonly { readonly destinationId: string; readonly endsAtMs: number }[]
}

export type Decided = {
  readonly notices: readonly Notice[]
  /**
   * The keys of the notices to forget. A notice is forgotten if the catalog no longer has its hook or
   * destination. A `needs_backfill` notice is also forgotten if it is over (`#isOver`).
   */
  readonly forgotten: readonly string[]
  /**
   * Number of hooks that have begun to fail again, but get no new notice yet, because the window of the
   * previous notice isn't over.
   */
  readonly coalesced: number
}

/** Limit on the notices of one decision. Further notices wait for the next decision. */
const mostAtOnce = 100

/**
 * Decides which notices are made. A decider may be replaced at any time, for example by one in another
 * process. The new decider makes the same decisions from the board, but a little later.
 */
export class Decider {
  readonly #terms: Terms
  /** Hooks that fail, but get no new notice yet, because the window of the previous notice isn't over. */
  #heldBack = new Set<string>()
  readonly #times = new Map<string, number>()
  /**
   * The hooks with a `failing` notice that work again. `sinceMs`: the time since which the hook has worked.
   * `answeredMs`: the time when the hook first accepted a request after the notice.
   */
  #well = new Map<string, { readonly sinceMs: number; readonly answeredMs: number }>()
  #behindSince = new Map<string, number>()
  #begunMs: number | undefined

  constructor(terms: Terms) {
    this.#terms = terms
  }

  decide(board: Board, situation: Situation): Decided {
    const { nowMs, isKnown } = situation
    if (this.#begunMs === undefined) dropInherited(board, nowMs - this.#terms.windowMs)
    // The lower time is used, because the former time lies in the future if the clock was set back.
    this.#begunMs = Math.min(this.#begunMs ?? nowMs, nowMs)
    const failing = board.failing(nowMs - this.#terms.staleMs)
    const begun = this.#begun(board, failing, situation)
    const counted = countedKinds.flatMap((kind) => this.#counted(kind, board, failing, situation))
    const notices = inTurns([
      ...this.#recovered(board, failing, situation),
      ...begun.notices,
      ...counted,
      ...refusals(board, situation, this.#terms),
      ...this.#behind(board, situation),
      ...secretsEnding(board, situation, this.#terms),
    ]).slice(0, mostAtOnce)
    for (const notice of notices) if (notice.kind === 'failing') this.#times.delete(hookKey(notice))
    const forgotten = board.allTold().filter(([, { notice }]) => {
      const hookId = 'hookId' in notice ? notice.hookId : undefined
      return !isKnown(notice.destinationId, hookId) || this.#isOver(notice, board, situation)
    })
    for (const [, { notice }] of forgotten) if ('hookId' in notice) this.#times.delete(hookKey(notice))
    return { notices, forgotten: forgotten.map(([key]) => key), coalesced: begun.coalesced }
  }

  /**
   * Decides about failing hooks that have no `failing` notice, or whose last `failing` notice was followed by
   * a `recovered` notice.
   */
  #begun(
    board: Board,
    failing: ReadonlyMap<string, SeenHook>,
    { nowMs, isKnown }: Situation,
  ): { notices: readonly Notice[]; coalesced: number } {
    const notices: Notice[] = []
    const heldBack = new Set<string>()
    let coalesced = 0
    for (const [key, hook] of failing) {
      const { destinationId, hookId, sinceMs, lastOutcome } = hook
      if (!isKnown(destinationId, hookId) || toldFailing(board, hook) !== undefined) continue
      const before = board.told(toldKey('failing', destinationId, hookId))?.notice.atMs ?? -Infinity
      if (this.#isInWindow(before, nowMs)) {
        heldBack.add(key)
        if (this.#heldBack.has(key)) continue
        coalesced++
        this.#times.set(key, (this.#times.get(key) ?? 0) + 1)
        continue
      }
      // If the hook's notice was held back until now, `#times` has already counted this failure.
      const times = Math.max(1, (this.#times.get(key) ?? 0) + (this.#heldBack.has(key) ? 0 : 1))
      notices.push({ kind: 'failing', destinationId, hookId, sinceMs, atMs: nowMs, lastOutcome, times })
      // The notice may have to wait for the next decision, which must not count this failure again.
      if (this.#heldBack.has(key)) heldBack.add(key)
    }
    this.#heldBack = heldBack
    return { notices, coalesced }
  }

  /**
   * Decides about hooks that have a `failing` notice and have accepted a request after it. If a process
   * reports a failure of a hook after that request, the hook has not recovered.
   */
  #recovered(
    board: Board,
    failing: ReadonlyMap<string, SeenHook>,
    { nowMs, isKnown }: Situation,
  ): readonly Notice[] {
    const before = this.#well
    this.#well = new Map()
    return toldHooks(board).flatMap((hook): readonly Notice[] => {
      const { destinationId, hookId, sinceMs } = hook
      const key = hookKey(hook)
      const answeredMs = board.answeredMs(hook)
      const isWell = answeredMs > (failing.get(key)?.lastFailedMs ?? 0)
      if (!isWell || !isKnown(destinationId, hookId)) return []
      const known = before.get(key)
      // If the clock was set back, the time begins anew.
      const well = known !== undefined && known.sinceMs <= nowMs ? known : { sinceMs: nowMs, answeredMs }
      this.#well.set(key, well)
      if (nowMs - well.sinceMs < this.#terms.wellMs) return []
      return [{ kind: 'recovered', destinationId, hookId, sinceMs, atMs: well.answeredMs }]
    })
  }

  /**
   * Decides about notices with counts. If a destination has a failing hook, its `paced` counts are dropped,
   * because deliveries are put off because of this hook, and there is a notice about the hook itself.
   */
  #counted(
    kind: CountedKind,
    board: Board,
    failing: ReadonlyMap<string, SeenHook>,
    { nowMs, isKnown }: Situation,
  ): readonly Notice[] {
    const { windowMs, least } = this.#terms
    const sick = new Set([...failing.values(), ...toldHooks(board)].map(({ destinationId }) => destinationId))
    return [...board.tallies(kind)].flatMap(([destinationId, { sinceMs, counts }]): readonly Notice[] => {
      const isUrgent = urgentReasons.some((reason) => (counts[reason] ?? 0) > 0)
      const isEnough = least[kind] > 0 && (isUrgent || sumOf(counts) >= least[kind])
      const isSick = kind === 'paced' && sick.has(destinationId)
      const isOld = nowMs - sinceMs >= windowMs
      if (!isKnown(destinationId) || isSick || (isOld && !isEnough)) {
        board.dropTally(kind, destinationId)
        return []
      }
      const before = board.told(toldKey(kind, destinationId))?.notice.atMs ?? -Infinity
      if (!isEnough || this.#isInWindow(before, nowMs)) return []
      return [{ kind, destinationId, sinceMs, atMs: nowMs, counts }]
    })
  }

  /**
   * Decides about destinations that have lacked values for at least `failingAfterMs`. If a first sync sends
   * the missing values within this time, no notice is made.
   */
  #behind(board: Board, { nowMs, behind }: Situation): readonly Notice[] {
    const since = new Map<string, number>()
    const notices = behind.flatMap(({ destinationId, spaceId }): readonly Notice[] => {
      const key = toldKey('needs_backfill', destinationId, spaceId)
      const sinceMs = Math.min(this.#behindSince.get(key) ?? nowMs, nowMs)
      since.set(key, sinceMs)
      if (board.told(key) !== undefined || nowMs - sinceMs < this.#terms.failingAfterMs) return []
      return [{ kind: 'needs_backfill', destinationId, spaceId, atMs: nowMs }]
    })
    this.#behindSince = since
    return notices
  }

  /**
   * Returns true if a notice is over, so that another one may be made. `needs_backfill` is over if the
   * destination has all of its values again, and `refusing` if the hook has accepted a request, both not
   * before `windowMs` has passed since the notice.
   */
  #isOver(notice: Notice, board: Board, { nowMs }: Situation): boolean {
    if (notice.kind === 'refusing')
      return board.acceptedMs(notice) > notice.atMs && !this.#isInWindow(notice.atMs, nowMs)
    if (notice.kind !== 'needs_backfill') return false
    const { failingAfterMs } = this.#terms
    // If this process began to decide only a short time ago, it may not know yet which destinations need a
    // backfill.
    const isNew = nowMs - (this.#begunMs ?? nowMs) < failingAfterMs
    const key = toldKey('needs_backfill', notice.destinationId, notice.spaceId)
    return !isNew && !this.#behindSince.has(key) && !this.#isInWindow(notice.atMs, nowMs)
  }

  /**
   * Returns true if a notice with the time `atMs` was made less than a window ago. A time in the far future
   * comes from a wrong clock, and must not prevent notices until this time.
   */
  #isInWindow(atMs: number, nowMs: number): boolean {
    return Math.abs(nowMs - atMs) < this.#terms.windowMs
  }
}

/**
 * Decides about secrets that end soon. A secret gets one notice, and another one if the time of its end
 * changes.
 */
function secretsEnding(
  board: Board,
  { nowMs, secrets }: Situation,
  { secretEndingMs }: Terms,
): readonly Notice[] {
  return secrets.flatMap(({ destinationId, endsAtMs }): readonly Notice[] => {
    const told = board.told(toldKey('secret_ending', destinationId))?.notice
    const isTold = told?.kind === 'secret_ending' && told.endsAtMs === endsAtMs
    if (isTold || nowMs >= endsAtMs || nowMs < endsAtMs - secretEndingMs) return []
    return [{ kind: 'secret_ending', destinationId, endsAtMs, atMs: nowMs }]
  })
}

/**
 * Decides about hooks that refuse everything. A hook gets one notice, until it has accepted a request and
 * refuses everything again.
 */
function refusals(
  board: Board,
  { nowMs, isKnown }: Situation,
  { refusingAfterMs = 0, staleMs }: Terms,
): readonly Notice[] {
  if (refusingAfterMs === 0) return []
  return [...board.refusing(nowMs - staleMs).values()].flatMap((hook): readonly Notice[] => {
    const { destinationId, hookId, sinceMs, lastOutcome } = hook
    const isTold = board.told(toldKey('refusing', destinationId, hookId)) !== undefined
    if (isTold || nowMs - sinceMs < refusingAfterMs || !isKnown(destinationId, hookId)) return []
    return [{ kind: 'refusing', destinationId, hookId, sinceMs, atMs: nowMs, lastOutcome }]
  })
}

/** Returns the hooks with a `refusing` notice. */
export function toldRefusing(board: Board): readonly HookName[] {
  return board.allTold().flatMap(([, { notice }]) => (notice.kind === 'refusing' ? [notice] : []))
}

/**
 * Drops the counts that came while another process made the decisions. This process can't know which windows
 * ended in that time, or which destinations were failing.
 */
function dropInherited(board: Board, windowFromMs: number): void {
  for (const [destinationId] of board.tallies('paced')) board.dropTally('paced', destinationId)
  for (const [destinationId, { sinceMs }] of board.tallies('dead_letters'))
    if (sinceMs <= windowFromMs) board.dropTally('dead_letters', destinationId)
}

type ToldHook = Extract<Notice, { kind: 'failing' }>

/** Returns the hooks with a `failing` notice and no `recovered` notice after it. */
export function toldHooks(board: Board): readonly ToldHook[] {
  return board.allTold().flatMap(([, { notice }]) => {
    if (notice.kind !== 'failing') return []
    return toldFailing(board, notice) ?? []
  })
}

function toldFailing(
  board: Board,
  { destinationId, hookId }: { readonly destinationId: string; readonly hookId: string },
): ToldHook | undefined {
  const failing = board.told(toldKey('failing', destinationId, hookId))?.notice
  if (failing?.kind !== 'failing') return undefined
  const recovered = board.told(toldKey('recovered', destinationId, hookId))?.notice
  const isOver = recovered?.kind === 'recovered' && recovered.sinceMs === failing.sinceMs
  return isOver ? undefined : failing
}

/**
 * Returns the notices in an order in which destinations take turns. So a destination with very many failing
 * URLs doesn't delay the notices of others.
 */
function inTurns(notices: readonly Notice[]): readonly Notice[] {
  const turns = new Map<string, number>()
  const withTurn = notices.map((notice) => {
    const turn = turns.get(notice.destinationId) ?? 0
    turns.set(notice.destinationId, turn + 1)
    return { notice, turn }
  })
  return withTurn.toSorted((one, other) => one.turn - other.turn).map(({ notice }) => notice)
}
