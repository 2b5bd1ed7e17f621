import type { DeadReason } from './dead-letter-reasons.ts'

/** What a reason of dead letters means, and what to do. */
export type Explained = { readonly means: string; readonly todo: string }

const mendAndReplay = 'Mend the endpoint. Then replay.'
const mendProducer = 'Correct the producer. These records stay as they are, so a replay does not help them.'
const askUpstream = 'Correct the upstream that writes these records, and let it write them again.'

function faulty(means: string): Explained {
  return { means, todo: mendProducer }
}

const explained: Readonly<Record<DeadReason, Explained>> = {
  failed_for_good: {
    means: 'Every URL refused it with an answer that no later try would change.',
    todo: 'Look at the answers. Correct the URL, the secret, or the endpoint. Then replay.',
  },
  expired: { means: 'No URL took it within the time for tries (4 hours).', todo: mendAndReplay },
  expired_untried: {
    means: 'Its URLs failed so often that its turn never came within the time for tries.',
    todo: 'Mend or pause the destination. Then replay.',
  },
  waited_too_long: {
    means: 'It waited for its turn longer than the topic keeps records (30 days).',
    todo: 'Switch the destination on, or let it take more (rate limit, requests in flight). Then replay.',
  },
  login_failed: {
    means: 'No token to log in with could be had for the time of delivery.loginWait.',
    todo: 'Correct the login of its URL, or mend the token endpoint. Then replay.',
  },
  destination_removed: {
    means: 'The destination was removed from the catalog while it waited.',
    todo: 'Undo the removal if it was a mistake: the history of the catalog has it. Then replay.',
  },
  destination_off: {
    means: 'The destination was switched off while it waited.',
    todo: 'Switch the destination on. Then replay.',
  },
  auto_paused: {
    means: 'Sluice had paused the destination, because its URLs had failed for too long.',
    todo: 'Mend the endpoint, resume the destination, wait some seconds, and replay.',
  },
  dropped: {
    means: 'Somebody gave up what waited for the destination. The audit trail says who.',
    todo: 'Replay, if it should be sent after all.',
  },
  filter_failed: {
    means:
      'A condition of the destination, of its filter or of a mapping, can not be evaluated for this message.',
    todo: 'Try it with sluice filter test or sluice mappings test, and correct it. Then replay: what passes it is sent.',
  },
  mapping_failed: {
    means: 'The mapping of the destination makes no request of this message.',
    todo: 'Try it with sluice mappings test, and correct the mapping. Then replay.',
  },
  bad_retry_headers: {
    means: 'The headers of its record on a retry topic cannot be read.',
    todo: 'Look who else writes to the retry topics. Then replay.',
  },
  no_source: faulty('Its record has no header source-id.'),
  unknown_source: {
    means: 'The catalog has no such source.',
    todo: 'Add the source to the catalog, or correct the header source-id of the producer. Then replay.',
  },
  record_too_large: {
    means: 'Its record is larger than Kafka lets Sluice write.',
    todo: 'Raise the limits of the topics, or send smaller messages. Then replay.',
  },
  unreadable_batch: {
    means: 'The batch in Kafka is damaged, or compressed in an unknown way.',
    todo: 'Correct the compression of the producer.',
  },
  internal_error: {
    means: 'Sluice failed on it. This is a bug.',
    todo: 'Look at the log lines of the workers, and report it. Replay after an update.',
  },
  empty_value: faulty('Its record has no value.'),
  not_utf8: faulty('Its value is not UTF-8.'),
  not_json: faulty('Its value is not JSON.'),
  not_an_object: faulty('Its value is JSON, but no object.'),
  unknown_type: faulty('Its `type` is none of the known ones.'),
  no_user_anon_id: faulty('It has neither a userId nor an anonymousId.'),
  no_previous_id: faulty('It is an alias without a previousId.'),
  id_not_string: faulty('Its userId or anonymousId is no text.'),
  event_not_defined: faulty('It is a track without an event.'),
  event_not_string: faulty('Its event is no text.'),
  group_id_not_defined: faulty('It is a group without a groupId.'),
  properties_not_object: faulty('Its properties are no object.'),
  traits_not_object: faulty('Its traits are no object.'),
  context_not_object: faulty('Its context is no object.'),
  integrations_not_object: faulty('Its integrations are no object.'),
  bad_timestamp: faulty('A time in it cannot be read.'),
  message_id_not_string: faulty('Its messageId is no text.'),
  message_id_too_long: faulty('Its messageId is too long.'),
  number_out_of_range: faulty('A number in it is too large to be kept exactly.'),
  nested_too_deep: faulty('Its objects and lists are nested too deep.'),
  too_many_keys: faulty('It has too many keys.'),
  body_too_large: faulty('Its body would be too large.'),
  bad_change: { means: 'The audience change has a fault.', todo: askUpstream },
  ahead_of_time: {
    means: 'The time of the change is in the future.',
    todo: 'Correct the clock of the upstream, and let it write the change again.',
  },
  bad_property_name: { means: 'The audience has no usable property name.', todo: askUpstream },
  sync_incomplete: {
    means: 'Parts of the sync are missing.',
    todo: 'Run the sync again. It makes up for this one.',
  },
  sync_outdated: {
    means: 'A newer sync of the audience came first.',
    todo: 'Nothing: the newer one counts.',
  },
  sync_inconsistent: { means: 'The parts of the sync contradict each other.', todo: askUpstream },
  sync_too_large: { means: 'The sync has more members than is allowed.', todo: askUpstream },
  sync_wrong_partition: {
    means: 'A part of the sync is in the wrong partition.',
    todo: 'Let the upstream use the key and the partitioner of docs/producing-audience-changes.md.',
  },
  bad_deletion: { means: 'The order to delete a user has a fault.', todo: askUpstream },
  bad_state: {
    means: 'The stored state of a member cannot be read.',
    todo: 'Look who else writes to the topic memberships.',
  },
  no_schema_registry: {
    means: 'Its value begins with a schema id, and no registry is set.',
    todo: 'Set schemaRegistry.url for the workers. Then replay.',
  },
  bad_frame: faulty('Its value begins like one with a schema id, but is too short.'),
  unknown_schema: {
    means: 'The registry has no schema with its id.',
    todo: 'Look whether the workers use the registry of the producer. Then replay.',
  },
  unusable_schema: {
    means: 'Its schema cannot be used, such as one with a reference that is missing.',
    todo: 'Correct the schema in the registry. Then replay.',
  },
  schema_mismatch: faulty('Its value does not fit its schema.'),
}

/** Explains a reason. Who wrote it may be newer than this program, and have others. */
export function explainReason(reason: string): Explained {
  const found = Object.entries(explained).find(([name]) => name === reason)
  return (
    found?.[1] ?? {
      means: `The reason is ${reason}.`,
      todo: 'Look at docs/replay.md of your version of Sluice.',
    }
  )
}
