import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { enter } from '../../../src/message/enter.ts'
import { eventOf, messageOf, type Notice, noticeKinds } from '../../../src/notices/notice.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/notices.md'), 'utf8')

const atMs = Date.parse('2026-07-23T14:05:12.000Z')
const sinceMs = Date.parse('2026-07-23T14:00:03.000Z')
const day = 24 * 3_600_000
const hook = { destinationId: 'crm', hookId: 'main', sinceMs }
const counted = { destinationId: 'crm', sinceMs, atMs }
const notices: readonly Notice[] = [
  { kind: 'failing', ...hook, atMs, lastOutcome: 'status 503', times: 1 },
  { kind: 'recovered', ...hook, atMs: atMs + 55 * 60_000 },
  { kind: 'refusing', ...hook, atMs: atMs + 55 * 60_000, lastOutcome: 'status 401' },
  { kind: 'dead_letters', ...counted, counts: { failed_for_good: 11, expired: 1 } },
  { kind: 'paced', ...counted, counts: { overflow: 940, not_before: 60 } },
  { kind: 'needs_backfill', destinationId: 'crm', spaceId: 'personas', atMs },
  { kind: 'secret_ending', destinationId: 'crm', endsAtMs: Date.parse('2026-07-30T12:00:00.000Z'), atMs },
  { kind: 'auto_paused', destinationId: 'crm', sinceMs, atMs: sinceMs + 5 * day, lastOutcome: 'timeout' },
  { kind: 'resumed', destinationId: 'crm', sinceMs, atMs: sinceMs + day, cause: 'asked' },
]

/** Returns the body that a receiver gets for a notice. */
function bodyOf(notice: Notice): unknown {
  const { text } = messageOf(notice, () => ({ name: 'The CRM' }))
  const entered = enter(Buffer.from(text), { topic: 'events', partition: 0, offset: 0, timestampMs: 0 })
  return entered.ok ? JSON.parse(entered.message.body.toString()) : entered
}

test('the page has the body of a notice of each kind, as it is sent', () => {
  const examples = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']): unknown => JSON.parse(text))
  expect(examples).toEqual(notices.map(bodyOf))
  expect(notices.map(({ kind }) => kind).toSorted()).toEqual(noticeKinds.toSorted())
})

test('the page names each event', () => {
  expect(noticeKinds.map(eventOf).filter((event) => !page.includes(`| \`${event}\``))).toEqual([])
})

test('the command after a pause also sends what a broker has taken whose clock is half a minute behind', () => {
  const { text } = messageOf(
    { kind: 'resumed', destinationId: 'crm', sinceMs, atMs: sinceMs + day, cause: 'asked' },
    () => ({ name: 'The CRM' }),
  )
  const from = /--reason auto_paused --from ([^" ]+)/.exec(text)?.[1] ?? ''
  expect(Date.parse(from)).toBeLessThan(sinceMs - 30_000)
})
