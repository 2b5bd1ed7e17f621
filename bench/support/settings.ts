/** The settings of a benchmark. Each benchmark has its own defaults for missing settings. */
export type Settings = {
  /** How often each side is measured, or the number of pairs. */
  runs?: number
  messages?: number
  /** The length of a run in seconds. */
  seconds?: number
  /** The number of messages a second. */
  rate?: number
  destinations?: number
  processes?: number
  /** If true, the benchmark also measures the cost of the delivery log. */
  log?: boolean
  /** If true, the receivers use TLS. */
  tls?: boolean
  /** If true, the flooded destination keeps its cap after the flood. */
  keepCap?: boolean
  profileDir?: string
}

/** The result of a benchmark, as a table for people and as plain data. */
export type BenchmarkResult = { table: string; figures: object }
