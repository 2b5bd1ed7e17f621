import { expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { sharedTopics } from '../../../../src/commands/topics/growth-topics.ts'

test.each(['1', '6'])(
  'of an installation with %s partitions, topics that have one for all stay with one in a growth',
  (partitions) => {
    const read = readConfig({ env: { SLUICE_TOPICS_PARTITIONS: partitions } })
    if (!read.ok) throw new Error(read.message)
    expect(sharedTopics(read.config)).toEqual(
      ['events', 'audience-changes', 'deletions', 'dead-letters', 'attempts'].map((name) => `sluice.${name}`),
    )
  },
)
