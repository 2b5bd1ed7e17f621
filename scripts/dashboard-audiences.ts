import { increase, max, rate, sum, type Board } from './dashboard-queries.ts'

export const audiencesBoard: Board = {
  id: 'audiences',
  title: 'audiences',
  about: 'Changes, syncs, first syncs, and the state of units.',
  panels: [
    {
      title: 'Changes',
      about: 'Single changes of audiences and computed traits per second, by outcome.',
      unit: 'cps',
      queries: [rate('sluice_audience_changes_total', 'outcome')],
    },
    {
      title: 'Syncs',
      about: 'Syncs of units, by outcome: applied, or the reason why the sync was refused.',
      unit: 'short',
      runbook: 'sync-refused',
      queries: [increase('sluice_audience_syncs_total', 'outcome')],
    },
    {
      title: 'Users of syncs',
      about: 'Users of applied syncs per second, by outcome: joined, left or unchanged.',
      unit: 'cps',
      queries: [rate('sluice_audience_synced_users_total', 'outcome')],
    },
    {
      title: 'First syncs',
      about: 'Destinations that were connected to a space later and lack members of it, by state.',
      unit: 'short',
      queries: [max('sluice_first_syncs', 'state')],
    },
    {
      title: 'First syncs: left and sent',
      about: 'left: values to write to replays. sent a second: values written to replays per second.',
      unit: 'short',
      queries: [
        { ...sum('sluice_first_sync_left'), legend: 'left' },
        { ...rate('sluice_first_sync_sent_total', ''), legend: 'sent a second' },
      ],
    },
    {
      title: 'Need a backfill',
      runbook: 'sync-refused',
      about: 'Destinations that lack a value of an audience or a computed trait.',
      unit: 'short',
      queries: [max('sluice_destination_needs_backfill')],
    },
    {
      title: 'Units that restore',
      runbook: 'restore',
      about: 'Units whose state is being read. Their retries, audience changes and deletions wait.',
      unit: 'short',
      queries: [sum('sluice_units_restoring')],
    },
    {
      title: 'Records to restore',
      about: 'Offsets of memberships that still have to be read.',
      unit: 'short',
      queries: [sum('sluice_restore_remaining_records')],
    },
    {
      title: 'Last restore',
      about: 'How long the last restore of a unit took: the longest time of all workers.',
      unit: 's',
      queries: [max('sluice_restore_seconds')],
    },
  ],
}
