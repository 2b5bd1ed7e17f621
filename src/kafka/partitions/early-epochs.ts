/** The leader epochs of the records that were taken early. Epochs never fall with rising offsets. */
export class EarlyEpochs {
  /** For each epoch, the first offset that is known to have it, ascending. */
  readonly #starts: { from: number; readonly epoch: number }[] = []

  note(offset: number, epoch: number): void {
    const index = this.#starts.findIndex((start) => start.epoch >= epoch)
    const start = this.#starts[index]
    if (start?.epoch === epoch) start.from = Math.min(start.from, offset)
    else this.#starts.splice(index < 0 ? this.#starts.length : index, 0, { from: offset, epoch })
  }

  /**
   * Returns the epoch of an offset that was noted. For other offsets, the epoch may be higher. -1: unknown.
   */
  of(offset: number): number {
    return this.#starts.findLast(({ from }) => from <= offset)?.epoch ?? -1
  }
}
