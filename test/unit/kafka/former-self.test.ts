import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { type Dismissal, dismissFormerSelf } from '../../../src/kafka/former-self.ts'

const name = 'sluice-pod-0-1'
const other = { clientId: 'sluice-pod-1-1', memberId: 'other' }
const former = { clientId: name, memberId: 'former' }
/** Nothing of the former self can be under way any more; something may be for an hour. */
const settled = 0
const unsettled = process.uptime() * 1000 + 3_600_000

type Group = { members: readonly (typeof former)[] }

function dismissalOf(
  group: Group,
  given: Partial<Dismissal>,
): Dismissal & { left: string[]; said: string[] } {
  const left: string[] = []
  const said: string[] = []
  const say = (_fields: object, message: string) => said.push(message)
  return {
    name,
    settleMs: settled,
    readMembers: async () => group.members,
    async leave(memberId) {
      left.push(memberId)
    },
    isOver: () => false,
    log: { info: say, warn: say },
    ...given,
    left,
    said,
  }
}

function refusal(type: string): Error {
  return new kafkajs.KafkaJSProtocolError(Object.assign(new Error(type), { type }))
}

describe('a member that starts', () => {
  test('leaves the others in the group', async () => {
    const dismissal = dismissalOf({ members: [other] }, {})
    await dismissFormerSelf(dismissal)
    expect(dismissal).toMatchObject({ left: [], said: [] })
  })

  test('takes out the one that has its name', async () => {
    const dismissal = dismissalOf({ members: [other, former] }, {})
    await dismissFormerSelf(dismissal)
    expect(dismissal.left).toEqual(['former'])
  })

  test('takes out none where several have it, and says what to do', async () => {
    const dismissal = dismissalOf({ members: [former, { ...former, memberId: 'a second' }] }, {})
    await dismissFormerSelf(dismissal)
    expect(dismissal.left).toEqual([])
    expect(dismissal.said).toEqual([expect.stringContaining('kafka.instanceId must be another')])
  })

  test('rests for as long as something of that one may be under way, or until its session is over', async () => {
    const group: Group = { members: [former] }
    const dismissal = dismissalOf(group, { settleMs: unsettled })
    const dismissed = dismissFormerSelf({
      ...dismissal,
      async readMembers() {
        const { members } = group
        group.members = []
        return members
      },
    })
    await dismissed
    expect(dismissal.left).toEqual([])
    expect(dismissal.said).toHaveLength(1)
  })

  test('does nothing more when it stops', async () => {
    let looks = 0
    const dismissal = dismissalOf({ members: [former] }, { settleMs: unsettled, isOver: () => ++looks > 2 })
    await dismissFormerSelf(dismissal)
    expect(dismissal.left).toEqual([])
  })

  test.each([
    ['UNKNOWN_MEMBER_ID', undefined],
    ['GROUP_AUTHORIZATION_FAILED', 'GROUP_AUTHORIZATION_FAILED'],
  ])('where the group answers %s', async (type, complaint) => {
    const dismissal = dismissalOf(
      { members: [former] },
      {
        async leave() {
          throw refusal(type)
        },
      },
    )
    const outcome = await dismissFormerSelf(dismissal).catch((error: Error) => error.message)
    expect(outcome).toBe(complaint)
  })
})
