import { type Board, type CountedKind, countedKinds, hookKey, type SeenHook } from './board.ts'
import { type Notice, sumOf } from './notice.ts'
import { toldKey } from './notice-record.ts'

/** When what becomes a notice. Times are milliseconds. */
export type Terms = {
  /** How long a destination lacks values before that is told. */
  readonly failingAfterMs: number
  /** At most one notice of a kind is made of the same in this time. */
  readonly windowMs: number
  /** So many in a window are told; 0: none ever. */
  readonly least: Readonly<Record<CountedKind, number>>
  /** A report that is older says nothing any more. */
  readonly staleMs: number
  /** So long nobody may see a hook fail that has taken something. */
  readonly wellMs: number
}

/** What is so now, beside what was reported. */
export type Situation = {
  /** Epoch milliseconds. */
  readonly nowMs: number
  /** Whether the catalog has a hook, or with no hook a destination. */
  readonly isKnown: (destinationId: string, hookId?: string) => boolean
  /** Destinations of the catalog that need a backfill, each with its space. */
  readonly behind: readonly { readonly destinationId: string; readonly spaceId: string }[]
}

export type Decided = {
  readonly notices: readonly Notice[]
  /** Keys of what was told, and is over. */
  readonly forgotten: readonly string[]
  /**
   * Hooks that have begun to fail again, of which nothing is told: the window of the notice before isn't
   * over.
   */
  readonly coalesced: number
}

/** More than this wait for the next time: an outage of everybody's is told in steps. */
const mostAtOnce = 100

/**
 * Decides what is told. What it keeps is beside the point: one that begins anew, as another process does,
 * decides the same from the board, a little later.
 */
export class Decider {
  readonly #terms: Terms
  /** Hooks that fail and are not told, by the window of the notice before. */
  #heldBack = new Set<string>()
  readonly #times = new Map<string, number>()
  /** Since when a hook that was told works, and when it first took something. */
  readonly #well = new Map<string, { readonly sinceMs: number; readonly answeredMs: number }>()
  #behindSince = new Map<string, number>()
  #begunMs: number | undefined

  constructor(terms: Terms) {
    this.#terms = terms
  }

  decide(board: Board, situation: Situation): Decided {
    const { nowMs, isKnown } = situation
    if (this.#begunMs === undefined) dropInherited(board, nowMs - this.#terms.windowMs)
    this.#begunMs ??= nowMs
    const failing = board.failing(nowMs - this.#terms.staleMs)
    const begun = this.#begun(board, failing, situation)
    const counted = countedKinds.flatMap((kind) => this.#counted(kind, board, failing, situation))
    const notices = [
      ...this.#recovered(board, failing, situation),
      ...begun.notices,
      ...counted,
      ...this.#behind(board, situation),
    ]
    return {
      notices: notices.slice(0, mostAtOnce),
      forgotten: board.allTold().flatMap(([key, { notice }]) => {
        const hookId = 'hookId' in notice ? notice.hookId : undefined
        return isKnown(notice.destinationId, hookId) && !this.#isOver(notice, situation) ? [] : [key]
      }),
      coalesced: begun.coalesced,
    }
  }

  /** Hooks that fail, and of which that is not told. */
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
      if (nowMs - before < this.#terms.windowMs) {
        heldBack.add(key)
        if (this.#heldBack.has(key)) continue
        coalesced++
        this.#times.set(key, (this.#times.get(key) ?? 0) + 1)
        continue
      }
      // One that was held back until now is among those that were counted.
      const times = Math.max(1, (this.#times.get(key) ?? 0) + (this.#heldBack.has(key) ? 0 : 1))
      notices.push({ kind: 'failing', destinationId, hookId, sinceMs, atMs: nowMs, lastOutcome, times })
      this.#times.delete(key)
    }
    this.#heldBack = heldBack
    return { notices, coalesced }
  }

  /** Hooks that were told to fail, have taken something since, and that nobody sees fail after that. */
  #recovered(
    board: Board,
    failing: ReadonlyMap<string, SeenHook>,
    { nowMs, isKnown }: Situation,
  ): readonly Notice[] {
    return toldHooks(board).flatMap((hook): readonly Notice[] => {
      const { destinationId, hookId, sinceMs } = hook
      const key = hookKey(hook)
      const answeredMs = board.answeredMs(hook)
      const isWell = answeredMs > (failing.get(key)?.lastFailedMs ?? 0)
      if (!isWell || !isKnown(destinationId, hookId)) {
        this.#well.delete(key)
        return []
      }
      const well = this.#well.get(key) ?? { sinceMs: nowMs, answeredMs }
      this.#well.set(key, well)
      if (nowMs - well.sinceMs < this.#terms.wellMs) return []
      this.#well.delete(key)
      return [{ kind: 'recovered', destinationId, hookId, sinceMs, atMs: well.answeredMs }]
    })
  }

  /** A destination with a hook that fails is slow for that reason, which is told. */
  #counted(
    kind: CountedKind,
    board: Board,
    failing: ReadonlyMap<string, SeenHook>,
    { nowMs, isKnown }: Situation,
  ): readonly Notice[] {
    const { windowMs, least } = this.#terms
    const sick = new Set([...failing.values(), ...toldHooks(board)].map(({ destinationId }) => destinationId))
    return [...board.tallies(kind)].flatMap(([destinationId, { sinceMs, counts }]): readonly Notice[] => {
      const isEnough = least[kind] > 0 && sumOf(counts) >= least[kind]
      const isSick = kind === 'paced' && sick.has(destinationId)
      const isOld = nowMs - sinceMs >= windowMs
      if (!isKnown(destinationId) || isSick || (isOld && !isEnough)) {
        board.dropTally(kind, destinationId)
        return []
      }
      const before = board.told(toldKey(kind, destinationId))?.notice.atMs ?? -Infinity
      if (!isEnough || nowMs - before < windowMs) return []
      return [{ kind, destinationId, sinceMs, atMs: nowMs, counts }]
    })
  }

  /**
   * Destinations that have lacked values for a while: what a first sync makes up for by itself isn't told.
   */
  #behind(board: Board, { nowMs, behind }: Situation): readonly Notice[] {
    const since = new Map<string, number>()
    const notices = behind.flatMap(({ destinationId, spaceId }): readonly Notice[] => {
      const key = toldKey('needs_backfill', destinationId, spaceId)
      const sinceMs = this.#behindSince.get(key) ?? nowMs
      since.set(key, sinceMs)
      if (board.told(key) !== undefined || nowMs - sinceMs < this.#terms.failingAfterMs) return []
      return [{ kind: 'needs_backfill', destinationId, spaceId, atMs: nowMs }]
    })
    this.#behindSince = since
    return notices
  }

  /** A destination that has all of its values again may be told of anew, a window later. */
  #isOver(notice: Notice, { nowMs }: Situation): boolean {
    if (notice.kind !== 'needs_backfill') return false
    const { failingAfterMs, windowMs } = this.#terms
    // Who has just begun may not know yet which destinations need one.
    const isNew = nowMs - (this.#begunMs ?? nowMs) < failingAfterMs
    const key = toldKey('needs_backfill', notice.destinationId, notice.spaceId)
    return !isNew && !this.#behindSince.has(key) && nowMs - notice.atMs >= windowMs
  }
}

/**
 * Drops what this process has added up while another one decided: nobody told it which windows were over, nor
 * which destinations failed at the time.
 */
function dropInherited(board: Board, windowFromMs: number): void {
  for (const [destinationId] of board.tallies('paced')) board.dropTally('paced', destinationId)
  for (const [destinationId, { sinceMs }] of board.tallies('dead_letters'))
    if (sinceMs <= windowFromMs) board.dropTally('dead_letters', destinationId)
}

type ToldHook = Extract<Notice, { kind: 'failing' }>

/** Hooks of which was told that they fail, and not that they have recovered. */
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
