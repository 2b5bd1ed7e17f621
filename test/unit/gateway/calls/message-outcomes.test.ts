import { describe, expect, test } from 'vitest'
import { rejectedReasons } from '../../../../src/gateway/messages/left-out-reasons.ts'
import { maxRejectedNamed, MessageOutcomes } from '../../../../src/gateway/calls/message-outcomes.ts'

const longId = 'x'.repeat(101)

describe('the answer to a request', () => {
  test('says nothing of messages where all are taken', () => {
    const outcomes = new MessageOutcomes()
    outcomes.take('track')
    expect(outcomes.answer()).toEqual({ status: 200, body: '{"success":true}' })
  })

  test('names what was left out by its place, its id and the reason', () => {
    const outcomes = new MessageOutcomes()
    outcomes.leaveOut('bad_timestamp', 3, { messageId: 'm3' })
    expect(outcomes.answer().body).toBe(
      '{"success":true,"rejected":[{"index":3,"messageId":"m3","reason":"bad_timestamp"}],"rejectedCount":1}',
    )
  })

  test('names an id of a hundred characters, though each takes two code units', () => {
    const outcomes = new MessageOutcomes()
    const messageId = '🎉'.repeat(100)
    outcomes.leaveOut('bad_timestamp', 0, { messageId })
    expect(JSON.parse(outcomes.answer().body).rejected).toMatchObject([{ messageId }])
  })

  test.each([
    ['none', {}],
    ['an empty one', { messageId: '' }],
    ['a number for it', { messageId: 7 }],
    ['one that is too long', { messageId: longId }],
  ])('has no id for a message with %s', (_, item) => {
    const outcomes = new MessageOutcomes()
    outcomes.leaveOut('event_not_defined', 0, item)
    expect(JSON.parse(outcomes.answer().body).rejected).toEqual([{ index: 0, reason: 'event_not_defined' }])
  })

  test('to a single call says that nothing was taken, and what to do', () => {
    const outcomes = new MessageOutcomes()
    outcomes.leaveOut('event_not_defined', 0, { messageId: 'm' }, 'Set event.')
    expect(JSON.parse(outcomes.answerToSingle().body)).toEqual({
      success: false,
      message: 'Set event.',
      rejected: [{ index: 0, messageId: 'm', reason: 'event_not_defined' }],
      rejectedCount: 1,
    })
    expect(outcomes.answerToSingle().status).toBe(200)
  })

  test('to a single call has a text for each reason', () => {
    for (const reason of rejectedReasons) {
      const outcomes = new MessageOutcomes()
      outcomes.leaveOut(reason, 0, {})
      expect(JSON.parse(outcomes.answerToSingle().body).message).toMatch(/^[A-Z].*\.$/)
    }
  })

  test('to a single call whose message was taken is that of a batch', () => {
    const outcomes = new MessageOutcomes()
    outcomes.take('track')
    expect(outcomes.answerToSingle()).toEqual({ status: 200, body: '{"success":true}' })
  })

  test('names no more than a hundred, and counts all', () => {
    const outcomes = new MessageOutcomes()
    for (let index = 0; index < 2_500; index++)
      outcomes.leaveOut('unknown_type', index, { messageId: 'x'.repeat(100) })
    const { body } = outcomes.answer()
    expect(JSON.parse(body)).toMatchObject({ success: true, rejectedCount: 2_500 })
    expect(JSON.parse(body).rejected).toHaveLength(maxRejectedNamed)
    expect(body.length).toBeLessThan(20_000)
  })
})
