import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { createCommonMetrics } from './common-metrics.ts'
import { TallyCounter, TallyHistogram } from './tally.ts'

/**
 * The worker's part of the one table of metrics; that of the gateway and what both tell lie beside it, and `docs/metrics.md` is made
 * of all. Labels come from closed lists, so a series count never grows with customers;
 * `perDestination` adds a destination label to the two counters that SREs ask it of. Where several processes are read as one,
 * values are added up, or go by `aggregator`.
 */
export type Metrics = ReturnType<typeof createMetrics>

const attemptBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 6]
const lookupBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const usedBuckets = [0.1, 0.25, 0.5, 0.75, 0.9, 1]
const deliveryBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 7_200, 14_400]

export function createMetrics({ perDestination }: { perDestination: boolean }) {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const destination = perDestination ? ['destination'] : []
  const registers = [registry]
  return {
    registry,
    perDestination,
    ...createCommonMetrics(registry),
    records: new TallyCounter({
      name: 'sluice_records_total',
      help: 'Records taken from Kafka, by topic (without the prefix).',
      labelNames: ['topic'],
      registers,
    }),
    notRouted: new Counter({
      name: 'sluice_not_routed_total',
      help: 'Messages, or destinations of a message, that nothing was sent to, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    repeatsDropped: new TallyCounter({
      name: 'sluice_repeats_dropped_total',
      help: 'Messages that were dropped, since their source had sent the same messageId before.',
      registers,
    }),
    repeatsRemembered: new Gauge({
      name: 'sluice_repeats_remembered',
      help: 'Messages that repeats are known by; past repeats.messages the oldest are forgotten.',
      registers,
    }),
    repeatsReach: new Gauge({
      name: 'sluice_repeats_reach_seconds',
      help: 'How far back repeats are known, as far as memory goes: repeats.window, or less where repeats.messages is too low.',
      aggregator: 'min',
      registers,
    }),
    deliveries: new TallyCounter({
      name: 'sluice_deliveries_total',
      help: 'Deliveries that came to an end, by verdict: delivered, dead_letter, superseded (by a newer value of the property) or suppressed (the user was deleted).',
      labelNames: ['verdict', ...destination],
      registers,
    }),
    deadLetters: new Counter({
      name: 'sluice_dead_letters_total',
      help: 'Records written to the dead letters, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    parked: new Counter({
      name: 'sluice_parked_total',
      help: 'Deliveries put on a retry topic, by tier and reason.',
      labelNames: ['tier', 'reason'],
      registers,
    }),
    attempts: new TallyCounter({
      name: 'sluice_attempts_total',
      help: 'Requests made, by outcome, status class and verdict.',
      labelNames: ['outcome', 'status_class', 'verdict', ...destination],
      registers,
    }),
    hooksOmitted: new Counter({
      name: 'sluice_hook_requests_omitted_total',
      help: 'Requests that a URL never got of a message that another URL of its destination took, by reason: full (there is no room left for URLs that fail), waited (it was not ready for it in time), skipped (it asked for a long pause), proxy, closed (the worker was stopped) or abandoned.',
      labelNames: ['reason', ...(perDestination ? ['destination', 'hook'] : [])],
      registers,
    }),
    logRecords: new TallyCounter({
      name: 'sluice_log_records_total',
      help: 'Records written to the delivery log (topic attempts).',
      registers,
    }),
    logRecordsDropped: new Counter({
      name: 'sluice_log_records_dropped_total',
      help: 'Records that the delivery log lacks, by reason: full (Kafka can not keep up), refused (it did not take them), unknown (its answer did not come). Deliveries are not concerned.',
      labelNames: ['reason'],
      registers,
    }),
    pacedHooks: new Gauge({
      name: 'sluice_paced_hooks',
      help: 'URLs that fail, or asked for a pause, and have something that waits or is under way: they are sent requests at a pace of their own.',
      registers,
    }),
    pacedInFlight: new Gauge({
      name: 'sluice_paced_requests_in_flight',
      help: 'Requests under way to URLs that fail or asked for a pause; at most sluice_paced_requests_in_flight_limit.',
      registers,
    }),
    pacedInFlightLimit: new Gauge({
      name: 'sluice_paced_requests_in_flight_limit',
      help: 'The most requests under way to URLs that fail: delivery.maxInFlightSick, or half of the open files that the system allows.',
      registers,
    }),
    pacedQueued: new Gauge({
      name: 'sluice_paced_requests_queued',
      help: 'Requests that wait for their turn at URLs that fail or asked for a pause.',
      registers,
    }),
    attemptSeconds: new TallyHistogram({
      name: 'sluice_attempt_duration_seconds',
      help: 'From the start of a request to its outcome.',
      labelNames: ['outcome'],
      buckets: attemptBuckets,
      registers,
    }),
    deliverySeconds: new TallyHistogram({
      name: 'sluice_produce_to_delivery_seconds',
      help: 'From the append of the message to Kafka to its successful delivery.',
      buckets: deliveryBuckets,
      registers,
    }),
    firstAttemptSeconds: new TallyHistogram({
      name: 'sluice_append_to_first_attempt_seconds',
      help: 'From the append of the message to Kafka to its first request, by way: direct (to an endpoint that is well: this latency is ours), paced (its URLs fail or asked for a pause), parked (it had waited on a retry topic: its destination was paused or had more than it takes) or replayed.',
      labelNames: ['way'],
      buckets: deliveryBuckets,
      registers,
    }),
    retryLimitUsed: new TallyHistogram({
      name: 'sluice_parked_retry_limit_used_ratio',
      help: 'How much of retry.limit (4 h) since its first attempt a delivery had used up when it was put on a retry topic; at 1 it is a dead letter. Not of those that were never tried.',
      buckets: usedBuckets,
      registers,
    }),
    openBreakers: new Gauge({
      name: 'sluice_open_breakers',
      help: 'URLs whose breaker is open, since most of their requests fail: of the process with the most. One that was sent nothing for 65 minutes is left out.',
      aggregator: 'max',
      registers,
    }),
    breakerOpen: new Gauge({
      name: 'sluice_breaker_open_seconds',
      help: 'How long the breaker has been open that is so for longest; 0 while none is.',
      labelNames: perDestination ? ['destination', 'hook'] : [],
      aggregator: 'max',
      registers,
    }),
    lookups: new TallyCounter({
      name: 'sluice_dns_lookups_total',
      help: 'Lookups of a name in DNS, by outcome: found, not_found, failed, or stale (failed, and an older answer is used).',
      labelNames: ['outcome'],
      registers,
    }),
    lookupSeconds: new TallyHistogram({
      name: 'sluice_dns_lookup_duration_seconds',
      help: 'From the question to DNS to its answer, or to when it was no longer waited for.',
      buckets: lookupBuckets,
      registers,
    }),
    proxyConnects: new TallyCounter({
      name: 'sluice_proxy_connects_total',
      help: 'Tunnels that the proxy was asked for, by outcome: tunnel, target (it can not be reached), fault (of the proxy), or down (for every target).',
      labelNames: ['outcome'],
      registers,
    }),
    proxyDown: new Gauge({
      name: 'sluice_proxy_down',
      help: '1 while the proxy can not be used, and fetching is stopped.',
      aggregator: 'max',
      registers,
    }),
    schemaLookups: new TallyCounter({
      name: 'sluice_schema_lookups_total',
      help: 'Questions to the schema registry for a schema, by outcome: found, unknown (it has none), unusable (it has one that can not be read with), or failed (it could not be asked).',
      labelNames: ['outcome'],
      registers,
    }),
    registryDown: new Gauge({
      name: 'sluice_schema_registry_down',
      help: '1 while a schema that is needed can not be had from the schema registry, and is asked for again.',
      aggregator: 'max',
      registers,
    }),
    waitingForSchema: new Gauge({
      name: 'sluice_partitions_waiting_for_schema',
      help: 'Partitions that are not fetched, since their next record needs a schema.',
      registers,
    }),
    inFlight: new Gauge({
      name: 'sluice_deliveries_in_flight',
      help: 'Deliveries with a request under way.',
      registers,
    }),
    inFlightLimit: new Gauge({
      name: 'sluice_deliveries_in_flight_limit',
      help: 'The most requests under way to URLs that are well: delivery.maxInFlight.',
      registers,
    }),
    queued: new Gauge({
      name: 'sluice_deliveries_queued',
      help: 'Deliveries that wait in their lane, or for an older value of the same property.',
      registers,
    }),
    heldRecords: new Gauge({
      name: 'sluice_held_records',
      help: 'Records in memory that are not settled yet.',
      registers,
    }),
    heldBytes: new Gauge({
      name: 'sluice_held_bytes',
      help: 'Bytes of the messages in memory that are not settled yet.',
      registers,
    }),
    heldRecordsLimit: new Gauge({
      name: 'sluice_held_records_limit',
      help: 'The most records in memory before reading pauses: delivery.bufferRecords. What waits for URLs that fail comes on top.',
      registers,
    }),
    heldBytesLimit: new Gauge({
      name: 'sluice_held_bytes_limit',
      help: 'The same in bytes: delivery.bufferBytes.',
      registers,
    }),
    lag: new Gauge({
      name: 'sluice_consumer_lag_records',
      help: 'Records not settled yet, by topic (with its prefix) and partition, of the partitions that this member owns: two members tell of one while it moves, so take the max by topic and partition before a sum.',
      labelNames: ['topic', 'partition'],
      aggregator: 'max',
      registers,
    }),
    retentionUsed: new Gauge({
      name: 'sluice_retention_used_ratio',
      help: 'Age of the oldest record not settled, as a share of how long its topic (without the prefix) keeps records: at 1 the broker may delete it undelivered. Above 0.5, start what is down or raise retention.ms of the topic. No series where the topic keeps all.',
      labelNames: ['topic'],
      aggregator: 'max',
      registers,
    }),
    recordsLost: new Counter({
      name: 'sluice_records_lost_total',
      help: 'Records that Kafka deleted (retention, DeleteRecords) before they were settled, by topic (without the prefix). They are not delivered.',
      labelNames: ['topic'],
      registers,
    }),
    truncations: new Counter({
      name: 'sluice_truncations_total',
      help: 'How often the log of a partition was found to be another one or to end before what was read of it, by topic (without the prefix).',
      labelNames: ['topic'],
      registers,
    }),
    partitionsInTrouble: new Gauge({
      name: 'sluice_partitions_in_trouble',
      help: 'Partitions of this member that can not be read now, by topic (without the prefix). The log says which and why.',
      labelNames: ['topic'],
      registers,
    }),
    rebalances: new Counter({
      name: 'sluice_rebalances_total',
      help: 'Joins of the consumer group that this member has completed after its first one.',
      registers,
    }),
    oldestUnsettled: new Gauge({
      name: 'sluice_oldest_unsettled_timestamp_seconds',
      help: 'When the oldest record that is not settled was appended to its topic (without the prefix), in Unix seconds; no series while all is settled. Of a retry topic: when the record that waits for longest was put there.',
      labelNames: ['topic'],
      aggregator: 'min',
      registers,
    }),
    parkedNow: new Gauge({
      name: 'sluice_parked_records',
      help: 'Records that wait on the retry topics of the partitions that this member owns, by tier.',
      labelNames: ['tier'],
      registers,
    }),
    oldestDue: new Gauge({
      name: 'sluice_oldest_due_timestamp_seconds',
      help: 'When the first record of a tier is due, in Unix seconds; no series while none is known to wait.',
      labelNames: ['tier'],
      aggregator: 'min',
      registers,
    }),
    commitAge: new Gauge({
      name: 'sluice_commit_age_seconds',
      help: 'Time since offsets were last committed, or found to need no commit.',
      aggregator: 'max',
      registers,
    }),
    commitFailures: new Counter({
      name: 'sluice_commit_failures_total',
      help: 'Commits of offsets that Kafka refused or did not answer. They are made again; some come with each rebalance.',
      registers,
    }),
    produceFailures: new Counter({
      name: 'sluice_produce_failures_total',
      help: 'Tries to write retries, dead letters or audience states that Kafka did not take. They are made again for as long as it takes.',
      registers,
    }),
    stalled: new Gauge({
      name: 'sluice_produce_stalled',
      help: '1 while Kafka does not take what is produced, and fetching is stopped.',
      aggregator: 'max',
      registers,
    }),
    audienceChanges: new TallyCounter({
      name: 'sluice_audience_changes_total',
      help: 'Single changes of audiences and computed traits, by outcome: changed and confirmed (a newer version of the same value) were written to memberships; repeated, outdated, deleted and space_disabled were not; moved went to the partition of its user.',
      labelNames: ['outcome'],
      registers,
    }),
    audienceSyncs: new Counter({
      name: 'sluice_audience_syncs_total',
      help: 'Syncs of a unit that were applied (outcome applied) or refused as a whole (outcome is the reason).',
      labelNames: ['outcome'],
      registers,
    }),
    audienceSynced: new Counter({
      name: 'sluice_audience_synced_users_total',
      help: 'Users of syncs that were applied, by what it came to: joined, left or unchanged.',
      labelNames: ['outcome'],
      registers,
    }),
    firstSyncs: new Gauge({
      name: 'sluice_first_syncs',
      help: 'Destinations that were connected to an audience space later and have still to be told who is in it, by state: under_way, or waiting (for the destination or the space to be on).',
      labelNames: ['state', ...destination],
      aggregator: 'max',
      registers,
    }),
    firstSyncSent: new TallyCounter({
      name: 'sluice_first_sync_sent_total',
      help: 'Members and computed traits written to replays for destinations that were connected to their space later.',
      labelNames: destination,
      registers,
    }),
    firstSyncLeft: new Gauge({
      name: 'sluice_first_sync_left',
      help: 'Members and computed traits that are still to be written to replays for destinations that were connected to their space later.',
      labelNames: destination,
      registers,
    }),
    restoring: new Gauge({
      name: 'sluice_units_restoring',
      help: 'Units whose state is being read from memberships; retries, audiences and deletions of these wait.',
      registers,
    }),
    restoreRemaining: new Gauge({
      name: 'sluice_restore_remaining_records',
      help: 'Offsets of memberships that the units being restored have still to read.',
      registers,
    }),
    restoreSeconds: new Gauge({
      name: 'sluice_restore_seconds',
      help: 'How long the last restoring of a unit took.',
      aggregator: 'max',
      registers,
    }),
    needsBackfill: new Gauge({
      name: 'sluice_destination_needs_backfill',
      help: 'Destinations that have missed a value of an audience or a computed trait, since it ended in the dead letters, they were off, or they were connected later and audiences.firstSync is off, and have had no backfill of all that the space holds since.',
      labelNames: destination,
      aggregator: 'max',
      registers,
    }),
  }
}
