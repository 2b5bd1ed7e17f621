import { randomBytes } from 'node:crypto'

/** What a view is about, or what has happened. A view without any of these is about everything. */
export type LiveSubject = {
  readonly destination?: string | undefined
  readonly message?: string | undefined
  readonly source?: string | undefined
}

/** An event as it is sent, but for its id. */
export type LivePart = {
  readonly text: string
  /**
   * What it is about, if whoever comes back gets it. `nothing`: it is about nothing that they may not see any
   * more. `undefined`: nobody gets it later.
   */
  readonly kept?: LiveSubject | 'nothing' | undefined
}

/** A text that views were sent, for whoever comes back. */
type Told = { readonly sequence: number; readonly text: string; readonly about: LiveSubject | 'nothing' }

/** How much of what a group was told is kept for who comes back. */
const mostKept = { texts: 200, characters: 128 * 1_024 } as const
/** A group whose views were all closed is kept for so long, in milliseconds. */
const keptForMs = 25_000
/** The most characters that are gathered for the next write. What is beyond is only counted. */
const mostGathered = 512 * 1_024

/** All views that show the same. What they are sent is written once, whatever their number. */
export class LiveGroup<View, Member> {
  readonly key: string
  readonly view: View
  readonly members = new Set<Member>()
  /** How many paced events the group may be told now. */
  budget: number
  /** How many events it wasn't told since it was last told of that. */
  skipped = 0
  /** Since when it has no views, by `performance.now`. */
  emptySinceMs = 0
  #text = ''
  #told: Told[] = []
  #characters = 0
  /**
   * The ids of a group are its own. If all groups counted together, an id would tell how much others are
   * told, and one of another group would be taken for one of this.
   */
  readonly #epoch = randomBytes(6).toString('hex')
  #sequence = 0
  /** All that concerns the group and has a later sequence is in `#told`. */
  #knownSince = 0

  constructor(key: string, view: View, budget: number) {
    this.key = key
    this.view = view
    this.budget = budget
  }

  /** Gathers an event for the next write. Returns false if there is too much already. */
  gather({ text, kept }: LivePart): boolean {
    if (this.#text.length > mostGathered) return false
    const sequence = ++this.#sequence
    const whole = `id: ${this.#epoch}.${sequence}\n${text}`
    this.#text += whole
    if (kept !== undefined) this.#keep({ sequence, text: whole, about: kept })
    return true
  }

  /** Takes what was gathered. */
  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  /**
   * Returns what was told after the event with this id. `undefined`: nobody knows all of it any more, or the
   * id is none of this group, such as one of an earlier process.
   */
  since(id: string): readonly Told[] | undefined {
    const [epoch, text = ''] = id.split('.', 2)
    const seen = Number(text)
    if (epoch !== this.#epoch || !Number.isSafeInteger(seen)) return undefined
    if (seen < this.#knownSince || seen > this.#sequence) return undefined
    return this.#told.filter(({ sequence }) => sequence > seen)
  }

  isForgotten(nowMs: number): boolean {
    return this.members.size === 0 && nowMs - this.emptySinceMs > keptForMs
  }

  #keep(told: Told): void {
    this.#told.push(told)
    this.#characters += told.text.length
    while (this.#told.length > mostKept.texts || this.#characters > mostKept.characters) {
      const oldest = this.#told.shift()
      if (oldest === undefined) return
      this.#characters -= oldest.text.length
      this.#knownSince = oldest.sequence
    }
  }
}

/** Groups by what they are about, so that an event only meets those that it may concern. */
export class LiveIndex<Group> {
  readonly #byDestination = new Map<string, Set<Group>>()
  readonly #byMessage = new Map<string, Set<Group>>()
  readonly #bySource = new Map<string, Set<Group>>()
  readonly #ofEverything = new Set<Group>()

  add(group: Group, about: LiveSubject): void {
    const place = this.#placeOf(about)
    if (place === undefined) {
      this.#ofEverything.add(group)
      return
    }
    const others = place.map.get(place.id)
    if (others === undefined) place.map.set(place.id, new Set([group]))
    else others.add(group)
  }

  remove(group: Group, about: LiveSubject): void {
    this.#ofEverything.delete(group)
    const place = this.#placeOf(about)
    const all = place?.map.get(place.id)
    all?.delete(group)
    if (all?.size === 0) place?.map.delete(place.id)
  }

  /** Returns true if something may concern a group. */
  mayConcern({ destination = '', message = '', source = '' }: LiveSubject): boolean {
    return (
      this.#ofEverything.size > 0 ||
      this.#byDestination.has(destination) ||
      this.#byMessage.has(message) ||
      this.#bySource.has(source)
    )
  }

  /** Yields the groups that something may concern. */
  *about({ destination = '', message = '', source = '' }: LiveSubject): Generator<Group> {
    yield* this.#ofEverything
    yield* this.#byDestination.get(destination) ?? []
    yield* this.#byMessage.get(message) ?? []
    yield* this.#bySource.get(source) ?? []
  }

  /** A group has one place: by what the fewest events are about. */
  #placeOf({ message, destination, source }: LiveSubject) {
    if (message !== undefined) return { map: this.#byMessage, id: message }
    if (destination !== undefined) return { map: this.#byDestination, id: destination }
    return source === undefined ? undefined : { map: this.#bySource, id: source }
  }
}
