/** Returns a function that calls `make` only once for each word, and remembers the result. */
export function memo<W extends string, T>(make: (word: W) => T): (word: W) => T {
  const made = new Map<W, T>()
  return (word) => {
    let value = made.get(word)
    if (value === undefined) {
      value = make(word)
      made.set(word, value)
    }
    return value
  }
}
