/** A role that has been started. */
export type Running = {
  /** Ends it in good order. */
  stop(): Promise<void>
  /** Ends at once what would outlive this process. */
  abandon?(): void
}
