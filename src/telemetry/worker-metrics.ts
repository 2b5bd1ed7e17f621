import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { createCommonMetrics } from './common-metrics.ts'
import { destinationMetrics } from './destination-metrics.ts'
import { TallyCounter, TallyHistogram } from './metric-tally.ts'
import { noticeMetrics } from './notice-metrics.ts'

/**
 * The metrics of a worker. `common-metrics.ts` has the metrics that every role has, and `gateway-metrics.ts`,
 * `log-metrics.ts` and `admin-metrics.ts` have the metrics of the other roles. `docs/metrics.md` is made from
 * all of these files. Labels come from closed lists, so the number of series doesn't grow with the number of
 * customers. Only with `perDestination`, some metrics also have a label with the destination. The
 * `aggregator` of a metric says how the values of several processes are merged. Without an `aggregator`, the
 * values are added up.
 */
export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>

const attemptBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 6]
const lookupBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const batchBuckets = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000]
const usedBuckets = [0.1, 0.25, 0.5, 0.75, 0.9, 1]
const deliveryBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 7_200, 14_400]

export function createWorkerMetrics({ perDestination }: { perDestination: boolean }) {
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
    notRouted: new TallyCounter({
      name: 'sluice_not_routed_total',
      help: 'Messages, or single destinations of a message, for which Sluice made no delivery, by reason. destination_off and all that begin with filtered_by count destinations. The other reasons count messages. filtered_by_missing_field: the condition of the destination reads a field that the message lacks, or that has another type.',
      labelNames: ['reason'],
      registers,
    }),
    ruleSeconds: new Counter({
      name: 'sluice_rule_seconds_total',
      help: 'Seconds that the conditions and mappings of destinations have taken.',
      registers,
    }),
    ruleWaits: new Counter({
      name: 'sluice_rule_waits_total',
      help: 'How often a destination began to wait, because its conditions and mappings took longer than they may, by limit. own: more than delivery.maxRuleTime of a second. shared: those of all destinations want more than half of the process, and it took more than its share. The log names the destination.',
      labelNames: ['limit'],
      registers,
    }),
    repeatsDropped: new TallyCounter({
      name: 'sluice_repeats_dropped_total',
      help: 'Messages that were dropped because their source had sent the same messageId before.',
      registers,
    }),
    repeatsRemembered: new Gauge({
      name: 'sluice_repeats_remembered',
      help: 'Messages that the process remembers to recognize repeats. There are at most repeats.messages. The process then forgets the oldest ones.',
      registers,
    }),
    repeatsReach: new Gauge({
      name: 'sluice_repeats_reach_seconds',
      help: 'The age of the oldest message whose repeats are recognized. It is at most repeats.window, and less if repeats.messages is too low.',
      aggregator: 'min',
      registers,
    }),
    repeatsRebuildRecords: new Counter({
      name: 'sluice_repeats_rebuild_records_total',
      help: 'Records of events that were read when the process got partitions, to know again which messages were delivered. remembered: the process recognizes repeats of this message. skipped: the message went nowhere, has no messageId, or is remembered already.',
      labelNames: ['outcome'],
      registers,
    }),
    repeatsRebuildSeconds: new Counter({
      name: 'sluice_repeats_rebuild_seconds_total',
      help: 'Seconds in which new messages of a partition waited, because the process was reading which earlier messages were delivered. Partitions that waited at the same time count each.',
      registers,
    }),
    ...destinationMetrics(registers, perDestination),
    batchMessages: new TallyHistogram({
      name: 'sluice_batch_messages',
      help: 'Messages of each request to a destination with `batch`. Requests with a part of a refused batch count too. Other metrics of attempts count messages.',
      buckets: batchBuckets,
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
      help: 'Deliveries written to a retry topic, or with the tier `waiting` to the queue of their destination, by tier and reason.',
      labelNames: ['tier', 'reason'],
      registers,
    }),
    logRecords: new TallyCounter({
      name: 'sluice_log_records_total',
      help: 'Records written to the delivery log (topic attempts).',
      registers,
    }),
    logRecordsDropped: new Counter({
      name: 'sluice_log_records_dropped_total',
      help: 'Records that are missing in the delivery log, by reason: full (Kafka can not keep up), refused (Kafka did not accept them), unknown (Kafka did not answer). Deliveries are not affected.',
      labelNames: ['reason'],
      registers,
    }),
    idleConnections: new Gauge({
      name: 'sluice_idle_connections',
      help: 'Connections to URLs that have no request now and are kept for the next one, at most sluice_idle_connections_limit.',
      registers,
    }),
    idleConnectionsLimit: new Gauge({
      name: 'sluice_idle_connections_limit',
      help: 'The limit of idle connections to URLs. It is delivery.maxIdleConnections, or the number of open files that the system allows if this is less.',
      registers,
    }),
    idleConnectionsClosed: new Counter({
      name: 'sluice_idle_connections_closed_total',
      help: 'Idle connections to URLs that were closed because there were too many. If this happens often, deliveries cost more, because they have to open connections. Then raise delivery.maxIdleConnections, or the limit of open files (ulimit -n).',
      registers,
    }),
    pacedHooks: new Gauge({
      name: 'sluice_paced_hooks',
      help: 'URLs that fail or asked for a pause, and have requests that wait or are in flight. Sluice slows down their requests.',
      registers,
    }),
    pacedInFlight: new Gauge({
      name: 'sluice_paced_requests_in_flight',
      help: 'Requests in flight to URLs that fail or asked for a pause, at most sluice_paced_requests_in_flight_limit.',
      registers,
    }),
    pacedInFlightLimit: new Gauge({
      name: 'sluice_paced_requests_in_flight_limit',
      help: 'The limit of sluice_paced_requests_in_flight. It is delivery.maxInFlightSick, or what the limit of open files (ulimit -n) allows if this is less.',
      registers,
    }),
    pacedQueued: new Gauge({
      name: 'sluice_paced_requests_queued',
      help: 'Requests that wait for their turn at URLs that fail or asked for a pause.',
      registers,
    }),
    attemptSeconds: new TallyHistogram({
      name: 'sluice_attempt_duration_seconds',
      help: 'Time from the start of a request to its outcome.',
      labelNames: ['outcome'],
      buckets: attemptBuckets,
      registers,
    }),
    deliverySeconds: new TallyHistogram({
      name: 'sluice_produce_to_delivery_seconds',
      help: 'Time from the append of a message to Kafka to its successful delivery.',
      buckets: deliveryBuckets,
      registers,
    }),
    firstAttemptSeconds: new TallyHistogram({
      name: 'sluice_append_to_first_attempt_seconds',
      help: 'Time from the append of a message to Kafka to its first request, by way: direct (the endpoint is healthy, so Sluice itself causes this latency), paced (the URLs fail or asked for a pause), parked (the message waited on a retry topic or in the queue of its destination, which was paused, over its limit or overloaded) or replayed.',
      labelNames: ['way'],
      buckets: deliveryBuckets,
      registers,
    }),
    retryLimitUsed: new TallyHistogram({
      name: 'sluice_parked_retry_limit_used_ratio',
      help: 'The time since the first attempt of a delivery when it is written to a retry topic, divided by retry.limit (4 h). At 1, a delivery becomes a dead letter. Deliveries that were never tried are not counted.',
      buckets: usedBuckets,
      registers,
    }),
    openBreakers: new Gauge({
      name: 'sluice_open_breakers',
      help: 'URLs with an open breaker, because most of their requests fail. If a worker has several processes, it is the highest count of a process, and not the sum. URLs that got no request for 65 minutes are not counted.',
      aggregator: 'max',
      registers,
    }),
    breakerOpen: new Gauge({
      name: 'sluice_breaker_open_seconds',
      help: 'How long a breaker has been open, for the breaker that has been open for the longest time. It is 0 while no breaker is open.',
      labelNames: perDestination ? ['destination', 'hook'] : [],
      aggregator: 'max',
      registers,
    }),
    failingDestination: new Gauge({
      name: 'sluice_failing_destination_seconds',
      help: 'How long URLs of a destination have failed, for the ten destinations of a process that have failed for five minutes or longer and have most failed requests. `sluice status` names them all.',
      labelNames: ['destination'],
      aggregator: 'max',
      registers,
    }),
    lookups: new TallyCounter({
      name: 'sluice_dns_lookups_total',
      help: 'DNS lookups of a name, by outcome: found, not_found, failed, or stale (the lookup failed, and an older answer is used).',
      labelNames: ['outcome'],
      registers,
    }),
    lookupSeconds: new TallyHistogram({
      name: 'sluice_dns_lookup_duration_seconds',
      help: 'Time from a DNS query to its answer, or to its timeout.',
      buckets: lookupBuckets,
      registers,
    }),
    proxyConnects: new TallyCounter({
      name: 'sluice_proxy_connects_total',
      help: 'Tunnels requested from the proxy, by outcome: tunnel (opened), target (the target can not be reached), fault (the proxy failed, or no file could be opened) or down (the proxy fails for every target).',
      labelNames: ['outcome'],
      registers,
    }),
    tokenRequests: new TallyCounter({
      name: 'sluice_token_requests_total',
      help: 'Requests to the token endpoints of destinations (login of the kind oauth2), by outcome: given (a token came) or failed. After a failure, messages wait in their queue, and the log names the destination.',
      labelNames: ['outcome'],
      registers,
    }),
    proxyDown: new Gauge({
      name: 'sluice_proxy_down',
      help: '1 while the outbound proxy can not be used. The worker then fetches nothing.',
      aggregator: 'max',
      registers,
    }),
    egressSuspect: new Gauge({
      name: 'sluice_egress_suspect',
      help: '1 while more than half of the servers of endpoints that answered this worker until recently can not be reached any more. Then the network, DNS or firewall of the worker is probably to blame. Meanwhile its failures make no notices, no automatic pauses and no alert SluiceEndpointFailing.',
      aggregator: 'max',
      registers,
    }),
    egressServers: new Gauge({
      name: 'sluice_egress_servers',
      help: 'Servers of endpoints by which the worker judges its own network, by state: working, lost (it can not be reached since less than 15 minutes) or dead. Servers of one destination, or at one address, count once.',
      labelNames: ['state'],
      registers,
    }),
    egressWithheld: new Counter({
      name: 'sluice_egress_withheld_failures_total',
      help: 'Failed attempts that did not count for notices and automatic pauses, because the network of the worker was suspect.',
      registers,
    }),
    schemaLookups: new TallyCounter({
      name: 'sluice_schema_lookups_total',
      help: 'Requests for a schema to the schema registry, by outcome: found, unknown (the registry does not have it), unusable (values can not be read with it) or failed (the registry could not be reached).',
      labelNames: ['outcome'],
      registers,
    }),
    registryDown: new Gauge({
      name: 'sluice_schema_registry_down',
      help: '1 while the worker can not get a schema that it needs from the schema registry. It asks again.',
      aggregator: 'max',
      registers,
    }),
    waitingForSchema: new Gauge({
      name: 'sluice_partitions_waiting_for_schema',
      help: 'Partitions that are not fetched because their next record needs a schema.',
      registers,
    }),
    inFlight: new Gauge({
      name: 'sluice_deliveries_in_flight',
      help: 'Deliveries with a request in flight.',
      registers,
    }),
    inFlightLimit: new Gauge({
      name: 'sluice_deliveries_in_flight_limit',
      help: 'The limit of sluice_deliveries_in_flight. It is delivery.maxInFlight, or what the limit of open files (ulimit -n) allows if this is less.',
      registers,
    }),
    queued: new Gauge({
      name: 'sluice_deliveries_queued',
      help: 'Deliveries that wait in the queue (lane) of their destination, or for an older value of the same property.',
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
      help: 'The limit of records in memory (delivery.bufferRecords). At this limit, the worker pauses reading. Records that wait only for failing URLs do not count.',
      registers,
    }),
    heldBytesLimit: new Gauge({
      name: 'sluice_held_bytes_limit',
      help: 'The limit of sluice_held_bytes (delivery.bufferBytes). At this limit, the worker pauses reading.',
      registers,
    }),
    lag: new Gauge({
      name: 'sluice_consumer_lag_records',
      help: 'Records not settled yet in the partitions that this member has started, by topic (with its prefix) and partition. A partition waits for its start while its previous owner finishes, or while the state of its unit is read. While a partition moves, two members report its lag. So take the max by topic and partition before you sum.',
      labelNames: ['topic', 'partition'],
      aggregator: 'max',
      registers,
    }),
    retentionUsed: new Gauge({
      name: 'sluice_retention_used_ratio',
      help: 'The age of the oldest unsettled record, divided by the retention of its topic. At 1, the broker may delete the record although it is not delivered. Above 0.5, start the workers that are down, or raise retention.ms of the topic. The label is the topic without the prefix. There is no series if the topic keeps all records, or if none of its partitions has been started.',
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
      help: 'Times that the log of a partition was replaced by another one, or ended before the last record that was read (see kafka.onTruncation), by topic (without the prefix).',
      labelNames: ['topic'],
      registers,
    }),
    partitionsInTrouble: new Gauge({
      name: 'sluice_partitions_in_trouble',
      help: 'Partitions of this member that can not be read now, by topic (without the prefix). The log says which partitions, and why.',
      labelNames: ['topic'],
      registers,
    }),
    fullWindows: new Gauge({
      name: 'sluice_partitions_window_full',
      help: 'Partitions that this member does not read on, because their oldest unsettled record is 24,008 offsets back: a commit can remember no more. Later messages of such a partition wait for that record. The label is the topic without the prefix.',
      labelNames: ['topic'],
      registers,
    }),
    rebalances: new Counter({
      name: 'sluice_rebalances_total',
      help: 'Joins of the consumer group that this member has completed, without its first join. If a worker has several processes, it is the highest count of a process, because a rebalance affects all of them.',
      aggregator: 'max',
      registers,
    }),
    oldestUnsettled: new Gauge({
      name: 'sluice_oldest_unsettled_timestamp_seconds',
      help: 'The time at which the oldest unsettled record was appended to its topic, in Unix seconds. The label is the topic without the prefix. There is no series while all records are settled.',
      labelNames: ['topic'],
      aggregator: 'min',
      registers,
    }),
    parkedNow: new Gauge({
      name: 'sluice_parked_records',
      help: 'Records that wait on the retry topics of the partitions that this member has started, by tier.',
      labelNames: ['tier'],
      registers,
    }),
    waitingNow: new Gauge({
      name: 'sluice_waiting_messages',
      help: "Deliveries that wait for their turn in the queues of this member's units (topic waiting), by the state of their destination: on (it is at its rate limit, at its limit of requests in flight, or catches up), paused, or auto_paused.",
      labelNames: ['state'],
      registers,
    }),
    oldestWaiting: new Gauge({
      name: 'sluice_waiting_oldest_timestamp_seconds',
      help: "The time since which the oldest delivery waits for its turn in the queues of this member's units (topic waiting), in Unix seconds. There is no series while none is known to wait.",
      aggregator: 'min',
      registers,
    }),
    waitingIndexBytes: new Gauge({
      name: 'sluice_waiting_index_bytes',
      help: 'Approximate memory of the index of the deliveries that wait for their turn, in bytes.',
      registers,
    }),
    oldestDue: new Gauge({
      name: 'sluice_oldest_due_timestamp_seconds',
      help: 'The time at which the first record of a tier (retry topic) is due, in Unix seconds. There is no series while no record is known to wait.',
      labelNames: ['tier'],
      aggregator: 'min',
      registers,
    }),
    commitAge: new Gauge({
      name: 'sluice_commit_age_seconds',
      help: 'Time since the worker last knew that all of its settled records were committed.',
      aggregator: 'max',
      registers,
    }),
    commitFailures: new Counter({
      name: 'sluice_commit_failures_total',
      help: 'Offset commits that Kafka refused or did not answer. The worker repeats such commits. A few failures at each rebalance are normal.',
      registers,
    }),
    produceFailures: new Counter({
      name: 'sluice_produce_failures_total',
      help: 'Writes of retries, dead letters or audience states that Kafka did not accept. The worker repeats each write until Kafka accepts it.',
      registers,
    }),
    failingPartitions: new Gauge({
      name: 'sluice_produce_partitions_failing',
      help: 'Partitions that have not accepted writes of this member for some seconds, by topic (without the prefix). While a partition of a retry topic or of dead-letters fails, the worker fetches and tries no records of the same unit. The log says which partitions, and why.',
      labelNames: ['topic'],
      registers,
    }),
    stalled: new Gauge({
      name: 'sluice_produce_stalled',
      help: '1 while Kafka accepts no writes to any partition. The worker then fetches nothing.',
      aggregator: 'max',
      registers,
    }),
    audienceChanges: new TallyCounter({
      name: 'sluice_audience_changes_total',
      help: 'Changes of audiences and computed traits, without syncs, by outcome. Changes with the outcome changed, or confirmed (a newer version of the same value), were written to memberships. Those with the outcome repeated, outdated, deleted or space_disabled were not written. Those with the outcome moved were in a wrong partition, and were written to the partition of the user.',
      labelNames: ['outcome'],
      registers,
    }),
    audienceSyncs: new Counter({
      name: 'sluice_audience_syncs_total',
      help: 'Syncs that were applied to a unit (outcome applied), or refused as a whole (the outcome is the reason).',
      labelNames: ['outcome'],
      registers,
    }),
    audienceSynced: new Counter({
      name: 'sluice_audience_synced_users_total',
      help: 'Users of applied syncs, by outcome: joined, left or unchanged.',
      labelNames: ['outcome'],
      registers,
    }),
    firstSyncs: new Gauge({
      name: 'sluice_first_syncs',
      help: 'Destinations that were connected to a source of audiences later and do not have all of its members yet, by state: under_way, or waiting (the destination or the source is not on).',
      labelNames: ['state', ...destination],
      aggregator: 'max',
      registers,
    }),
    ...replayMetrics(registers),
    ...noticeMetrics(registers, perDestination),
    firstSyncLeft: new Gauge({
      name: 'sluice_first_sync_left',
      help: 'Members and computed traits that still have to be written to the topic replays, for destinations that were connected to their source later.',
      labelNames: destination,
      registers,
    }),
    restoring: new Gauge({
      name: 'sluice_units_restoring',
      help: 'Units whose state is being read from memberships. Their retries, audience changes and deletions wait.',
      registers,
    }),
    restoreRemaining: new Gauge({
      name: 'sluice_restore_remaining_records',
      help: 'Offsets of memberships that still have to be read for the units that are being restored.',
      registers,
    }),
    restoreSeconds: new Gauge({
      name: 'sluice_restore_seconds',
      help: 'How long the last restore of a unit took.',
      aggregator: 'max',
      registers,
    }),
    needsBackfill: new Gauge({
      name: 'sluice_destination_needs_backfill',
      help: 'Destinations that lack a value of an audience or a computed trait. The reason is that the value became a dead letter, that the destination was off, or that it was connected later while audiences.firstSync was off. Run `sluice audience backfill --with-left` for such destinations.',
      labelNames: destination,
      aggregator: 'max',
      registers,
    }),
  }
}

function replayMetrics(registers: Registry[]) {
  return {
    replays: new Gauge({
      name: 'sluice_replays',
      help: 'Replays that this worker has under way.',
      registers,
    }),
    replaySent: new TallyCounter({
      name: 'sluice_replay_sent_total',
      help: 'Records that replays have written again, to the topic replays or to the topic from which a dead letter came.',
      registers,
    }),
    replayFailures: new Counter({
      name: 'sluice_replay_failures_total',
      help: 'Steps of replays that failed because Kafka did not answer. The worker tries again.',
      registers,
    }),
  }
}
