/** What a benchmark is told; what is left out has a default of its own in each. */
export type Settings = {
  /** How often each side is measured, or how many pairs. */
  runs?: number
  messages?: number
  /** The length of a run. */
  seconds?: number
  /** Messages a second. */
  rate?: number
  destinations?: number
  processes?: number
  /** Also measures what the delivery log costs. */
  log?: boolean
  /** The receivers speak TLS. */
  tls?: boolean
  /** The flooded destination keeps its cap after the flood. */
  keepCap?: boolean
  profileDir?: string
}

/** A result as a table for people, and as plain data. */
export type BenchmarkResult = { table: string; figures: object }
