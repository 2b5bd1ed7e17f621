// Reasons why a record or a delivery ends in the dead letters. The lists are fixed, because the reasons are
// values of the header `reason` and of metric labels. `describeDeath` in `src/pipeline/dead-letter-advice.ts`
// describes in words why a delivery was given up, and what to do.

/** Reasons to refuse a record of `events` because of a fault in its message. */
export const refusalReasons = [
  'empty_value',
  'not_utf8',
  'not_json',
  'not_an_object',
  'unknown_type',
  'no_user_anon_id',
  'no_previous_id',
  'id_not_string',
  'event_not_defined',
  'event_not_string',
  'group_id_not_defined',
  'properties_not_object',
  'traits_not_object',
  'context_not_object',
  'integrations_not_object',
  'bad_timestamp',
  'message_id_not_string',
  'message_id_too_long',
  'number_out_of_range',
  'nested_too_deep',
  'too_many_keys',
  'body_too_large',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

/**
 * Reasons why a record of any topic can't be used: its source is unknown, or it can't be read, kept or
 * processed.
 */
const recordReasons = [
  'no_source',
  'unknown_source',
  'record_too_large',
  'unreadable_batch',
  'internal_error',
] as const
type RecordReason = (typeof recordReasons)[number]

/** Reasons that only records of `audience-changes`, `deletions` and `memberships` have. */
const audienceReasons = [
  'bad_change',
  'ahead_of_time',
  'bad_property_name',
  'sync_incomplete',
  'sync_outdated',
  'sync_inconsistent',
  'sync_too_large',
  'sync_wrong_partition',
  'bad_deletion',
  'bad_state',
] as const

/** Reasons why a record of `audience-changes`, `deletions` or `memberships` can't be used. */
export type AudienceDeadReason =
  | Extract<
      RefusalReason,
      | 'empty_value'
      | 'not_utf8'
      | 'not_json'
      | 'body_too_large'
      | 'nested_too_deep'
      | 'too_many_keys'
      | 'number_out_of_range'
      | 'bad_timestamp'
    >
  | RecordReason
  | (typeof audienceReasons)[number]

/** Reasons why a framed value can't be read. Such a value begins with a schema id of a registry. */
const framedReasons = [
  'no_schema_registry',
  'bad_frame',
  'unknown_schema',
  'unusable_schema',
  'schema_mismatch',
] as const

/** Reasons why a delivery ends without success. */
const deliveryReasons = [
  'failed_for_good',
  'expired',
  'expired_untried',
  'waited_too_long',
  'login_failed',
  'destination_removed',
  'destination_off',
  'auto_paused',
  'dropped',
  'bad_retry_headers',
] as const

/** All reasons why a record or a delivery ends in the dead letters. */
export const deadReasons = [
  ...deliveryReasons,
  ...recordReasons,
  ...refusalReasons,
  ...audienceReasons,
  ...framedReasons,
] as const
export type DeadReason = (typeof deadReasons)[number]
