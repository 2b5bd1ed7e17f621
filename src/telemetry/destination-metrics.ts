import type { Registry } from 'prom-client'
import { DestinationCounter, RemovedDestinations } from './destination-counter.ts'

/** Creates the counters that have series for each destination if `perDestination` is true. */
export function destinationMetrics(registers: Registry[], perDestination: boolean) {
  const shared = { perDestination, registers }
  const counters = {
    deliveries: new DestinationCounter({
      name: 'sluice_deliveries_total',
      help: 'Deliveries that ended, by verdict: delivered, dead_letter, superseded (by a newer value of the property) or suppressed (the user was deleted).',
      labelNames: ['verdict'],
      ...shared,
    }),
    attempts: new DestinationCounter({
      name: 'sluice_attempts_total',
      help: 'Requests made, by outcome, status class and verdict.',
      labelNames: ['outcome', 'status_class', 'verdict'],
      ...shared,
    }),
    hooksOmitted: new DestinationCounter({
      name: 'sluice_hook_requests_omitted_total',
      help: 'Requests that were dropped after another URL of the destination had accepted the message, by reason: full (there was no room for more requests to URLs that fail), waited (the turn of the request did not come in time), skipped (the URL could not be ready in time), changed (the catalog changed the destination), stopped (Kafka accepted no writes of the unit), proxy (the proxy failed), files (no more files could be opened), closed (the worker stopped) or abandoned (the partition moved to another worker).',
      labelNames: ['reason'],
      destinationLabels: ['destination', 'hook'],
      ...shared,
    }),
    firstSyncSent: new DestinationCounter({
      name: 'sluice_first_sync_sent_total',
      help: 'Members and computed traits written to the topic replays, for destinations that were connected to their source later.',
      labelNames: [],
      ...shared,
    }),
  }
  return { ...counters, removedDestinations: new RemovedDestinations(Object.values(counters)) }
}
