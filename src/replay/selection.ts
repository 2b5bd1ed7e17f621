/** What is to be replayed. What is `undefined` isn't asked for. */
export type Selection = {
  readonly from: ReplaySource
  /** Who gets it. Of dead letters: those of this destination. Always there with `events`. */
  readonly destinationId?: string | undefined
  readonly sourceId?: string | undefined
  /** Of dead letters: why they died. */
  readonly reason?: string | undefined
  readonly messageId?: string | undefined
  /**
   * Epoch milliseconds. From `fromMs` to before `toMs`: when the event was taken, or the dead letter became
   * one.
   */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
}

export const replaySources = ['dead-letters', 'events'] as const
export type ReplaySource = (typeof replaySources)[number]

export type SelectionFault = { readonly field: keyof Selection; readonly problem: string }

/** What is wrong with it in itself, in words that say what to do; nothing where it can be replayed. */
export function faultsOf(selection: Selection): readonly SelectionFault[] {
  const faults: SelectionFault[] = []
  const { from, destinationId, reason, fromMs, toMs } = selection
  if (from === 'events' && destinationId === undefined)
    faults.push({ field: 'destinationId', problem: 'name the destination that is to get the events' })
  if (from === 'events' && reason !== undefined)
    faults.push({ field: 'reason', problem: 'leave it out: events have no reason, dead letters have' })
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    faults.push({ field: 'toMs', problem: 'name a time after the one that it begins at' })
  return faults
}

/** In a few words, for people. */
export function describeSelection(selection: Selection): string {
  const { from, destinationId, sourceId, reason, messageId, fromMs, toMs } = selection
  const parts = [from === 'events' ? 'events' : 'dead letters']
  if (messageId !== undefined) parts.push(`with messageId ${messageId}`)
  if (sourceId !== undefined) parts.push(`from source ${sourceId}`)
  if (reason !== undefined) parts.push(`for reason ${reason}`)
  if (destinationId !== undefined)
    parts.push(`${from === 'events' ? 'to' : 'of'} destination ${destinationId}`)
  if (fromMs !== undefined) parts.push(`from ${new Date(fromMs).toISOString()}`)
  if (toMs !== undefined) parts.push(`to before ${new Date(toMs).toISOString()}`)
  return parts.join(' ')
}
