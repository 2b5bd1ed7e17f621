import type { Found } from './found.ts'

function isSmallLetter(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a
}

/** The byte of the small letter for the byte of an ASCII capital. All other bytes stay the same. */
const lowerCase = Uint8Array.from({ length: 256 }, (_, byte) =>
  isSmallLetter(byte + 0x20) ? byte + 0x20 : byte,
)

/** A value of `#next` that is no byte. */
const none = -1

/**
 * Finds many texts in another text, in one pass (Aho and Corasick, 1975). The time for this is proportional
 * to the length of the other text, whatever the texts are. All texts are bytes, and the case of ASCII
 * letters doesn't matter. Each of the many texts has two bytes or more, and less than 64 KiB.
 *
 * The texts form a trie. Each of its nodes is a number, and stands for the beginning of at least one text.
 * The root, which stands for the empty beginning, is 0.
 */
export class SecretMatcher {
  /** The number of nodes. Each takes ten bytes of memory. */
  readonly size: number
  /** The child of the root for each byte, capitals included, or 0. */
  readonly #first = new Int32Array(256)
  /** The byte that leads from a node to the node with the next number, or `none`. */
  readonly #next: Int16Array
  /** All other children. */
  readonly #others: Children
  /**
   * The node for the longest end of a node's text that has a node and is shorter than this text. If the node
   * has children in `#others`, all bits are inverted, so the number is negative.
   */
  readonly #shorter: Int32Array
  /** The length of a node's text. */
  readonly #depth: Uint16Array
  /** The length of the longest of the texts that a node's text ends with, or 0. */
  readonly #found: Uint16Array

  constructor(texts: readonly Uint8Array[]) {
    // If a text is the beginning of another one, it comes after that one and adds no nodes. So the first
    // child of a node always gets the next number.
    const longestFirst = texts.toSorted((a, b) => b.length - a.length)
    const mostNodes = longestFirst.reduce((sum, { length }) => sum + length, 1)
    this.#others = new Children(longestFirst.length)
    this.#next = new Int16Array(mostNodes).fill(none)
    this.#shorter = new Int32Array(mostNodes)
    this.#depth = new Uint16Array(mostNodes)
    this.#found = new Uint16Array(mostNodes)
    const branches: Branch[] = []
    let size = 1
    for (const text of longestFirst) {
      const branch = this.#add(text, size)
      size += text.length - branch.from
      branches.push(branch)
    }
    this.size = size
    this.#link(branches)
  }

  /**
   * Looks in `inside` for the texts that begin before the byte `limit`, and adds them to `found`. Returns the
   * length of the longest end of `inside` that is the beginning of a text. Returns 0 if this end begins at
   * `limit` or later.
   */
  find(inside: Uint8Array, limit: number, found: Found): number {
    // Local variables, and the common cases of `#after` here, save a third of the time.
    const first = this.#first
    const next = this.#next
    const shorterOf = this.#shorter
    const depthOf = this.#depth
    const foundOf = this.#found
    let node = 0
    for (let at = 0; at < inside.length; at++) {
      if (at >= limit && at - (depthOf[node] ?? 0) >= limit) return 0
      if (node === 0) {
        node = first[inside[at] ?? 0] ?? 0
        continue
      }
      const byte = byteOf(inside, at)
      const shorter = shorterOf[node] ?? 0
      if (next[node] === byte) node++
      else if (shorter > 0 && next[shorter] === byte) node = shorter + 1
      else node = this.#after(node, byte)
      const length = foundOf[node] ?? 0
      if (length > 0 && at + 1 - length < limit) found.add(at + 1, length)
    }
    return depthOf[node] ?? 0
  }

  /** Adds the nodes of a text. `size` is the number of nodes so far. */
  #add(text: Uint8Array, size: number): Branch {
    let parent = 0
    let from = 0
    for (; from < text.length; from++) {
      const child = this.#childOf(parent, byteOf(text, from))
      if (child === 0) break
      parent = child
    }
    let node = parent
    for (let at = from; at < text.length; at++) {
      const child = size + at - from
      this.#adopt(node, byteOf(text, at), child)
      this.#depth[child] = at + 1
      node = child
    }
    this.#found[node] = text.length
    return { text, parent, from, first: size }
  }

  #adopt(parent: number, byte: number, child: number): void {
    if (parent === 0) {
      this.#first[byte] = child
      if (isSmallLetter(byte)) this.#first[byte - 0x20] = child
    } else if (child === parent + 1) this.#next[parent] = byte
    else {
      this.#others.set(parent, byte, child)
      this.#shorter[parent] = ~0
    }
  }

  /** Sets `#shorter` and `#found` of all nodes. Goes through all texts at once, byte by byte. */
  #link(branches: readonly Branch[]): void {
    let active = branches.length
    for (let at = 0; active > 0; at++) {
      for (let place = 0; place < active; place++) {
        const branch = branches[place]
        if (branch === undefined || at < branch.from) continue
        if (branch.text.length <= at) {
          // The other texts are not longer than this one.
          active = place
          break
        }
        const node = branch.first + at - branch.from
        this.#linkTo(at === branch.from ? branch.parent : node - 1, byteOf(branch.text, at), node)
      }
    }
  }

  #linkTo(parent: number, byte: number, node: number): void {
    const shorter = parent === 0 ? 0 : this.#after(this.#shorterOf(parent), byte)
    if (this.#found[node] === 0) this.#found[node] = this.#found[shorter] ?? 0
    this.#shorter[node] = (this.#shorter[node] ?? 0) < 0 ? ~shorter : shorter
  }

  #shorterOf(node: number): number {
    const shorter = this.#shorter[node] ?? 0
    return shorter < 0 ? ~shorter : shorter
  }

  #childOf(node: number, byte: number): number {
    if (node === 0) return this.#first[byte] ?? 0
    return this.#next[node] === byte ? node + 1 : this.#others.get(node, byte)
  }

  /** Returns the node for the longest end of a node's text and one more byte that has a node. */
  #after(start: number, byte: number): number {
    let node = start
    while (node !== 0 && this.#next[node] !== byte) {
      const shorter = this.#shorter[node] ?? 0
      if (shorter < 0) {
        const child = this.#others.get(node, byte)
        if (child !== 0) return child
        node = ~shorter
      } else node = shorter
    }
    return node === 0 ? (this.#first[byte] ?? 0) : node + 1
  }
}

/**
 * The nodes that a text has added to the trie. They are numbered from `first` on, and begin with the byte of
 * the text at `from`. `parent` is the node above them.
 */
type Branch = {
  readonly text: Uint8Array
  readonly parent: number
  readonly from: number
  readonly first: number
}

function byteOf(text: Uint8Array, at: number): number {
  return lowerCase[text[at] ?? 0] ?? 0
}

/** A factor for hashes. It is random, so nobody can choose texts whose hashes are alike. */
const factor = Math.floor(Math.random() * 2 ** 31) * 2 + 1

/** A hash table of children, with open addressing. */
class Children {
  readonly #shift: number
  readonly #mask: number
  /** The number of the parent times 256, plus the byte; 0 if the place is free. */
  readonly #keys: Uint32Array
  readonly #children: Int32Array

  /** `most`: how many children the table may get. */
  constructor(most: number) {
    const bits = 33 - Math.clz32(2 * most + 1)
    this.#shift = 32 - bits
    this.#mask = 2 ** bits - 1
    this.#keys = new Uint32Array(2 ** bits)
    this.#children = new Int32Array(2 ** bits)
  }

  get(parent: number, byte: number): number {
    return this.#children[this.#placeOf(parent * 256 + byte)] ?? 0
  }

  set(parent: number, byte: number, child: number): void {
    const key = parent * 256 + byte
    const place = this.#placeOf(key)
    this.#keys[place] = key
    this.#children[place] = child
  }

  /** Returns the place of a key, or the free place where the key belongs. */
  #placeOf(key: number): number {
    let place = Math.imul(key, factor) >>> this.#shift
    for (;;) {
      const there = this.#keys[place]
      if (there === key || there === 0) return place
      place = (place + 1) & this.#mask
    }
  }
}
