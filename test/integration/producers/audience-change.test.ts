import { beforeEach, describe, expect, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { createTopic, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { runSluice } from '../../support/worker-process.ts'

/** Tests of `sluice audience change` as an operator runs it, with a real Kafka. */

const partitions = 6
let variables: Record<string, string> = {}
let topic = ''

beforeEach(() => {
  const prefix = randomPrefix()
  topic = `${prefix}audience-changes`
  variables = {
    SLUICE_KAFKA_BROKERS: testKafka().join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
  }
})

const makeTopic = () => createTopic(topic, { partitions })

const change = (...args: readonly string[]): string[] => [
  'audience',
  'change',
  '--space',
  'personas',
  ...args,
]
const audience = ['--audience', 'aud_1', '--name', 'Big spenders']

async function changesWritten(): Promise<unknown[]> {
  return (await readAll(topic)).map(({ partition, key, value, headers }) => {
    expect(headers).toEqual({ 'source-id': 'personas' })
    expect(partition).toBe(partitionOf(key ?? '', partitions))
    const written: unknown = JSON.parse(value?.toString() ?? '')
    expect(written).toMatchObject({ userId: key })
    return written
  })
}

describe('a change', () => {
  test('of an audience is written as the flags say', async () => {
    await makeTopic()
    const args = change(
      ...audience,
      '--user',
      'Zoë',
      '--member',
      'false',
      '--changed-at',
      '2026-01-31T12:00:00Z',
    )
    const { stdout } = await runSluice(args, variables)
    expect(stdout).toBe(`sent 1 change to ${topic}\n`)
    expect(await changesWritten()).toEqual([
      {
        type: 'membership',
        audienceId: 'aud_1',
        audienceName: 'Big spenders',
        userId: 'Zoë',
        member: false,
        changedAt: '2026-01-31T12:00:00Z',
      },
    ])
  })

  test('of a computed trait takes any JSON, and is of now', async () => {
    await makeTopic()
    const trait = ['--trait', 'trait_1', '--name', 'Plan', '--key', 'plan']
    await runSluice(change(...trait, '--user', 'u1', '--value', '{"a":[1,null,"ü"]}'), variables)
    const [written] = await changesWritten()
    expect(written).toEqual({
      type: 'trait',
      traitId: 'trait_1',
      traitName: 'Plan',
      traitKey: 'plan',
      userId: 'u1',
      value: { a: [1, null, 'ü'] },
      changedAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
    })
  })

  test.concurrent.each([
    ['neither audience nor trait', ['--user', 'u1'], '--audience, --member'],
    ['both', [...audience, '--trait', 't', '--user', 'u1'], '--trait, --value'],
    ['no user', [...audience, '--member', 'true'], '--user'],
    ['no name', ['--audience', 'a', '--user', 'u1', '--member', 'true'], '--name'],
    ['no member', [...audience, '--user', 'u1'], '--member true when the user'],
    ['another member', [...audience, '--user', 'u1', '--member', 'yes'], '--member true when the user'],
    [
      'a value that is no JSON',
      ['--trait', 't', '--name', 'n', '--user', 'u1', '--value', 'gold'],
      `'"gold"'`,
    ],
    [
      'a number that is too large',
      ['--trait', 't', '--name', 'n', '--user', 'u1', '--value', '1e999'],
      '1.7e308',
    ],
    [
      'a time ahead',
      [...audience, '--user', 'u1', '--member', 'true', '--changed-at', '2999-01-01'],
      '--changed-at more than 5 minutes ahead',
    ],
    ['an empty user', [...audience, '--user', '', '--member', 'true'], '1,000 characters as --user'],
  ])('with %s says what to do', async (_fault, args, expected) => {
    const { stderr, stdout } = await runSluice(
      change(...args),
      { SLUICE_KAFKA_BROKERS: testKafka().join(',') },
      { expectedCode: 2 },
    )
    expect(stdout).toBe('')
    expect(stderr).toContain(expected)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  test('without a space is asked for it', async () => {
    const { stderr } = await runSluice(['audience', 'change', ...audience], {}, { expectedCode: 2 })
    expect(stderr).toContain('--space')
  })
})

const line = (userId: string, more: object = {}): string =>
  `${JSON.stringify({
    type: 'membership',
    audienceId: 'aud_1',
    audienceName: 'Big spenders',
    userId,
    member: true,
    changedAt: '2026-01-31T12:00:00.000Z',
    ...more,
  })}\n`

const byUser = (changes: readonly unknown[], userId: string): unknown[] =>
  changes.filter(
    (each) => typeof each === 'object' && each !== null && 'userId' in each && each.userId === userId,
  )

describe('changes on standard input', () => {
  beforeEach(makeTopic)

  test('are written in their order, each to the partition of its user', async () => {
    const users = Array.from({ length: 3_000 }, (_, user) => `user-${user % 1_000}`)
    const input = users.map((userId, index) => line(userId, { member: index % 2 === 0 })).join('\n')
    const { stdout } = await runSluice(change(), variables, { input })
    expect(stdout).toBe(`sent 3,000 changes to ${topic}\n`)
    const written = await changesWritten()
    const sent = users.map((userId, index): unknown => JSON.parse(line(userId, { member: index % 2 === 0 })))
    expect(written).toHaveLength(sent.length)
    for (const userId of users.slice(0, 50)) expect(byUser(written, userId)).toEqual(byUser(sent, userId))
  })

  test('are all refused when one is wrong, and it is named', async () => {
    const input = `${line('u1')}\n${line('u2', { changedAt: 'soon' })}`
    const { stderr } = await runSluice(change(), variables, { input, expectedCode: 1 })
    expect(stderr).toContain('standard input, line 3: has a changedAt that is no time')
    expect(stderr).toContain('Nothing was sent.')
    expect(await readAll(topic)).toEqual([])
  })

  test('of which there are none are asked for', async () => {
    const { stderr } = await runSluice(change(), variables, { input: '\n', expectedCode: 1 })
    expect(stderr).toContain('There is no change')
  })
})
