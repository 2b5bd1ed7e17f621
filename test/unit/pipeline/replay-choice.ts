import { defaultLimits } from '../../../src/message/limits.ts'
import type { Destination } from './stage.ts'

/** Returns what a replay of the source `shop` goes by, with one destination. */
export function choiceFor(destination: Destination) {
  const catalog = {
    sources: new Map([['shop', { enabled: true }]]),
    destinations: new Map([[destination.id, destination]]),
    destinationsBySource: new Map([['shop', [destination]]]),
  }
  return {
    jobId: 'job-1',
    topics: {
      events: 'events',
      audienceChanges: 'audience-changes',
      deletions: 'deletions',
      deadLetters: 'dead-letters',
      replays: 'replays',
    },
    catalog: () => catalog,
    limits: defaultLimits,
    partitions: 6,
  }
}
