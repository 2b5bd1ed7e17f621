import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { type Dismissal, dismissFormerSelf, type NamedMember } from '../../../src/kafka/former-self.ts'

const name = 'sluice-pod-0-1'
const other = { clientId: 'sluice-pod-1-1', memberId: 'other' }
const former = { clientId: name, memberId: 'former' }
const namesake = { clientId: name, memberId: 'namesake' }
const more = { clientId: 'sluice-pod-0-3', memberId: 'more' }

const upMs = process.uptime() * 1000
const longAgo = upMs - 10_000
const inAnHour = upMs + 3_600_000

type Look = readonly NamedMember[] | Error

/** What the group says each time that it is asked; the last for ever. */
function dismissalOf(looks: readonly Look[], given: Partial<Dismissal> = {}) {
  const left: string[] = []
  const said: string[] = []
  const say = (level: string) => (_fields: object, message: string) => void said.push(`${level}: ${message}`)
  let asked = 0
  const dismissal: Dismissal = {
    isOwnName: (clientId) => clientId === name || clientId === more.clientId,
    settleMs: longAgo,
    sessionTimeoutMs: inAnHour,
    async readMembers() {
      const look = looks[Math.min(asked++, looks.length - 1)] ?? []
      if (look instanceof Error) throw look
      return look
    },
    async leave({ memberId }) {
      left.push(memberId)
    },
    onResting() {},
    isOver: () => false,
    log: { info: say('info'), warn: say('warn'), error: say('error') },
    ...given,
  }
  return { dismissal, left, said, asked: () => asked }
}

function refusal(type: string): Error {
  return new kafkajs.KafkaJSProtocolError(Object.assign(new Error(type), { type }))
}

describe('a member that starts', () => {
  test('leaves the others in the group', async () => {
    const { dismissal, left, said } = dismissalOf([[other]])
    await dismissFormerSelf(dismissal)
    expect({ left, said }).toEqual({ left: [], said: [] })
  })

  test('takes out those that have its names', async () => {
    const { dismissal, left, said } = dismissalOf([[other, former, more]])
    await dismissFormerSelf(dismissal)
    expect(left).toEqual(['former', 'more'])
    expect(said).toEqual([
      expect.stringContaining('info: the group still has this worker'),
      expect.stringContaining('info: took out'),
      expect.stringContaining('info: took out'),
    ])
  })

  test('takes out none while something of it may be under way, and says so once', async () => {
    let isResting = false
    const { dismissal, left, said, asked } = dismissalOf([[former], [former], [former], []], {
      settleMs: inAnHour,
      onResting() {
        isResting = true
      },
    })
    await dismissFormerSelf(dismissal)
    expect(asked()).toBe(4)
    expect(left).toEqual([])
    expect(said).toHaveLength(1)
    expect(isResting).toBe(true)
  })

  test('waits where several have one name', async () => {
    const { dismissal, left } = dismissalOf([[former, namesake], []])
    await dismissFormerSelf(dismissal)
    expect(left).toEqual([])
  })

  test('joins beside those that are there after a session, and says what to do', async () => {
    const { dismissal, left, said } = dismissalOf([[former, namesake]], { sessionTimeoutMs: longAgo })
    await dismissFormerSelf(dismissal)
    expect(left).toEqual([])
    expect(said).toEqual([expect.stringMatching(/^error: .*give each its own kafka\.instanceId/)])
  })

  test('asks again when the group could not be asked, and says so once', async () => {
    const trouble = refusal('NOT_COORDINATOR_FOR_GROUP')
    const { dismissal, left, said } = dismissalOf([trouble, trouble, [former]])
    await dismissFormerSelf(dismissal)
    expect(left).toEqual(['former'])
    expect(said.filter((line) => line.startsWith('warn: '))).toHaveLength(1)
  })

  test('tries again where it can not be taken out', async () => {
    let tries = 0
    const { dismissal, said } = dismissalOf([[former]], {
      async leave() {
        if (++tries === 1) throw refusal('COORDINATOR_LOAD_IN_PROGRESS')
      },
    })
    await dismissFormerSelf(dismissal)
    expect(tries).toBe(2)
    expect(said.at(-1)).toContain('info: took out')
  })

  test('joins when the group can not be asked for a session', async () => {
    const { dismissal, asked } = dismissalOf([refusal('GROUP_AUTHORIZATION_FAILED')], {
      sessionTimeoutMs: longAgo,
    })
    await dismissFormerSelf(dismissal)
    expect(asked()).toBe(1)
  })

  test('does not say that it took out one whose session was over just then', async () => {
    const { dismissal, said } = dismissalOf([[former]], {
      leave: () => Promise.reject(refusal('UNKNOWN_MEMBER_ID')),
    })
    await dismissFormerSelf(dismissal)
    expect(said).toEqual([expect.stringContaining('info: the group still has this worker')])
  })

  test.each([
    ['before it asks', 0, 0],
    ['while it asks', 1, 1],
    ['while it rests', 2, 1],
  ])('takes out none when it stops %s', async (_when, stopAtLook, looks) => {
    let isOverCalls = 0
    const { dismissal, left, asked } = dismissalOf([[former]], {
      settleMs: stopAtLook === 2 ? inAnHour : longAgo,
      isOver: () => isOverCalls++ >= stopAtLook,
    })
    await dismissFormerSelf(dismissal)
    expect(asked()).toBe(looks)
    expect(left).toEqual([])
  })
})
