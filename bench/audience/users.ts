/**
 * The users of the benchmark have numbers. Their ids are as long as those of a real space, and are spread
 * over the partitions and over the store.
 */

const idBegin = '"userId":"'
const idCharacters = 36
const numberDigits = 12

export const audience = { id: 'big-spenders', name: 'Big spenders', property: 'big_spenders' } as const

export function userIdOf(number: number): string {
  const part = scramble(number).toString(16).padStart(8, '0')
  return `${part}-${part.slice(0, 4)}-4${part.slice(1, 4)}-8${part.slice(5, 8)}-${String(number).padStart(numberDigits, '0')}`
}

/** Returns 32 bits that look random (the finisher of MurmurHash3). */
function scramble(number: number): number {
  let bits = Math.imul(number + 1, 0x9e3779b1)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

const idMarker = Buffer.from(idBegin)
const entered = Buffer.from(`"traits":{"${audience.property}":true}`)
const left = Buffer.from(`"traits":{"${audience.property}":false}`)

/**
 * Reads the number of an Identify's user, and whether the user is a member. Returns `undefined` for any
 * other body.
 */
export function readIdentify(body: Buffer): { number: number; isMember: boolean } | undefined {
  const at = body.indexOf(idMarker)
  if (at < 0) return undefined
  const end = at + idMarker.length + idCharacters
  const number = Number(body.toString('latin1', end - numberDigits, end))
  if (body.includes(entered, end)) return { number, isMember: true }
  return body.includes(left, end) ? { number, isMember: false } : undefined
}

/**
 * The members of the audience at first, and those who leave and join at the second sync. One member in a
 * hundred leaves, spread over all members, and as many new users join.
 */
export class Cast {
  readonly members: number
  readonly joining: number

  constructor(members: number) {
    this.members = members
    this.joining = Math.floor(members / oneIn)
  }

  /** Number of all users, including those who join. The number of every user is below it. */
  get users(): number {
    return this.members + this.joining
  }

  /** True if the user leaves at the second sync. As many users leave as join. */
  isLeaving(number: number): boolean {
    return number < this.joining * oneIn && number % oneIn === someRemainder
  }

  *before(): Generator<number> {
    for (let number = 0; number < this.members; number++) yield number
  }

  *after(): Generator<number> {
    for (let number = 0; number < this.users; number++) if (!this.isLeaving(number)) yield number
  }
}

const oneIn = 100
const someRemainder = 37
