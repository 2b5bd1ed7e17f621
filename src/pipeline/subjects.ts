import type { LaneClass } from '../delivery/lane.ts'
import type { PropertyHeader } from '../retry/carried.ts'

/**
 * One Identify at a time for one subject: a property of a user in a space, at one destination. Two under way at once could
 * arrive in either order. There is nothing here for subjects of which nothing is under way, and every step takes the same time
 * however many there are.
 *
 * Fresh ones come in the order of their values, each of which was the newest when it came: a fresh one replaces all that waits.
 * A retry may be older than any of them, or the newest: it waits in line, and whoever takes it from there has to judge it.
 */

/** What takes turns. */
export type Sequenced<D> = {
  readonly destinationId: string
  readonly property: PropertyHeader | undefined
  readonly laneClass: LaneClass
  readonly isAbandoned: boolean
  isUncertain: boolean
  /** Set while it has its subject for itself. */
  subject: Subject<D> | undefined
  /** The next that waits for the same subject. */
  behind: D | undefined
  becomeUncertain(): void
}

/** Who has a subject, and those that wait for it. Only ever touched by `Subjects`. */
export type Subject<D> = { readonly key: string; holder: D; first: D | undefined; last: D | undefined }

export type SubjectsOptions<D> = {
  /** It has been replaced by a newer one and is done with. */
  superseded: (delivery: D) => void
  /** It waited, and has its subject now. Must only take note of that. */
  next: (delivery: D) => void
}

export class Subjects<D extends Sequenced<D>> {
  readonly #options: SubjectsOptions<D>
  readonly #subjects = new Map<string, Subject<D>>()
  #waiting = 0

  constructor(options: SubjectsOptions<D>) {
    this.#options = options
  }

  /** Those that have something under way. */
  get size(): number {
    return this.#subjects.size
  }

  /** Deliveries that wait. */
  get waiting(): number {
    return this.#waiting
  }

  /** True when it has its subject now, and must `leave` it. Otherwise it waits, until it is `next` or superseded. */
  enter(delivery: D, property: PropertyHeader): boolean {
    const key = keyOf(delivery.destinationId, property)
    const subject = this.#subjects.get(key)
    if (subject === undefined) {
      delivery.subject = { key, holder: delivery, first: undefined, last: undefined }
      this.#subjects.set(key, delivery.subject)
      return true
    }
    if (delivery.laneClass === 'fresh') this.#supersedeWaiting(subject, delivery)
    this.#append(subject, delivery)
    return false
  }

  /** What `holder` was to be replaced with, had it waited for its turn: the fresh one behind it, which has its subject now. */
  newestOf(holder: D): D {
    const { subject } = holder
    const newer = subject?.first
    if (subject === undefined || newer === undefined) return holder
    if (newer.laneClass !== 'fresh' || newer.isAbandoned) return holder
    this.#shift(subject)
    pass(subject, holder, newer)
    if (holder.isUncertain) newer.becomeUncertain()
    return newer
  }

  /** Its end: the next in line has the subject, and is told so. Nothing happens to one that has no subject. */
  leave(delivery: D): void {
    const { subject } = delivery
    if (subject === undefined) return
    const next = this.#shift(subject)
    if (next === undefined) {
      delivery.subject = undefined
      this.#subjects.delete(subject.key)
      return
    }
    pass(subject, delivery, next)
    this.#options.next(next)
  }

  /** Takes those that wait out of their lines; the others keep their order. */
  takeWaiting(isToGo: (delivery: D) => boolean): D[] {
    const taken: D[] = []
    for (const subject of this.#subjects.values()) {
      const line: D[] = []
      for (let one = this.#shift(subject); one !== undefined; one = this.#shift(subject)) line.push(one)
      for (const one of line) {
        if (isToGo(one)) taken.push(one)
        else this.#append(subject, one)
      }
    }
    return taken
  }

  #supersedeWaiting(subject: Subject<D>, by: D): void {
    for (let older = this.#shift(subject); older !== undefined; older = this.#shift(subject)) {
      // What the older one may still do late, the newer one has to outlast.
      if (older.isUncertain) by.becomeUncertain()
      this.#options.superseded(older)
    }
  }

  #append(subject: Subject<D>, delivery: D): void {
    this.#waiting++
    if (subject.last === undefined) subject.first = delivery
    else subject.last.behind = delivery
    subject.last = delivery
  }

  #shift(subject: Subject<D>): D | undefined {
    const { first } = subject
    if (first === undefined) return undefined
    this.#waiting--
    subject.first = first.behind
    first.behind = undefined
    if (subject.first === undefined) subject.last = undefined
    return first
  }
}

function pass<D extends Sequenced<D>>(subject: Subject<D>, from: D, to: D): void {
  from.subject = undefined
  to.subject = subject
  subject.holder = to
}

/** Lengths make it unambiguous, whatever the ids hold. */
function keyOf(destinationId: string, { userId, spaceId, property }: PropertyHeader): string {
  return `${destinationId.length},${spaceId.length},${property.length},${destinationId}${spaceId}${property}${userId}`
}
