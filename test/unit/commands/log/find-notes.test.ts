import { expect, test } from 'vitest'
import { notesOn } from '../../../../src/commands/log/find-notes.ts'
import { readBlock } from '../../../../src/delivery-log/block-reader.ts'
import { blockOf, stateOf } from '../../../support/log-blocks.ts'

type Given = Parameters<typeof stateOf>[0]

const settings = { delivery: { timeoutMs: 5_000 } }
const dead = 3
const [retry, final] = [2, 3]

/** Returns the notes on records that workers have written. */
function notesOf(...states: Given[]): string[] {
  const records = readBlock(blockOf(states.map((state) => stateOf({ messageId: 'order-1', ...state }))), 0)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the notes need no other setting
  return notesOn(records, settings as Parameters<typeof notesOn>[1])
}

const refused = { destination: 'crm', verdict: final, status: 404 }

test('a delivery that failed comes with advice, and a dead letter with the command that sends it again', () => {
  const notes = notesOf(refused, { destination: 'crm', kind: dead, reason: 'failed_for_good' })
  expect(notes).toEqual([
    expect.stringMatching(/^crm: .*url of the hook/),
    'crm: it is a dead letter. To send it again: sluice replay dead-letters --destination crm --message-id order-1',
    expect.stringContaining('SLUICE_ATTEMPTS_ANSWERS=true'),
  ])
})

test.each([
  ['filter_failed', 'sluice filter test'],
  ['mapping_failed', 'sluice mappings test'],
  ['login_failed', 'Correct the login'],
  ['dropped', 'audit trail'],
])(
  'a dead letter that was never sent (%s) comes with what its reason means, and what to do',
  (reason, words) => {
    expect(notesOf({ destination: 'crm', kind: dead, reason })).toEqual([
      expect.stringMatching(/^crm: /),
      expect.stringContaining('sluice replay dead-letters --destination crm'),
    ])
    expect(notesOf({ destination: 'crm', kind: dead, reason })[0]).toContain(words)
  },
)

test('where an answer was kept, no setting is named', () => {
  const answer = Buffer.from('no such path')
  expect(notesOf({ ...refused, verdict: retry, status: 500, answer }).join('\n')).not.toContain(
    'SLUICE_ATTEMPTS_ANSWERS',
  )
})

test('a delivery that succeeded needs no note', () => {
  expect(notesOf({ destination: 'crm', verdict: 1, status: 200 })).toEqual([])
})
