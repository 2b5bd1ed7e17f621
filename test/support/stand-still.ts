/** Blocks this process, as if it were suspended. No timer runs meanwhile, and nothing is read. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
