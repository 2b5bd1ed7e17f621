/** Messages at an even rate. The times are in seconds from the start of the simulation. */
export type Feed = { readonly fromS: number; readonly untilS: number; readonly perSecond: number }

export function messagesOf(feeds: readonly Feed[]): number {
  return feeds.reduce(
    (sum, { fromS, untilS, perSecond }) => sum + Math.floor((untilS - fromS) * perSecond),
    0,
  )
}

/**
 * Calls `arrive` at the time of each message, feed by feed. Resolves after the last message. `phase` (0 to 1)
 * is the delay of the first message of each feed, as a share of the time between two messages. With different
 * phases, the messages of several destinations don't arrive at the same time.
 */
export async function play(
  feeds: readonly Feed[],
  { startMs, phase, arrive }: { startMs: number; phase: number; arrive: () => void },
): Promise<void> {
  for (const feed of feeds) {
    const everyMs = 1_000 / feed.perSecond
    const fromMs = startMs + feed.fromS * 1_000 + everyMs * phase
    const count = messagesOf([feed])
    for (let arrived = 0; arrived < count; arrived++) {
      await untilTime(fromMs + arrived * everyMs)
      arrive()
    }
  }
}

async function untilTime(atMs: number): Promise<void> {
  const waitMs = Math.ceil(atMs - Date.now())
  if (waitMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, waitMs))
}
