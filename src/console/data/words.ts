import type { Condition, DeliveryState, LogRecord, Previewed, ReplayState, State } from './types.ts'

/** How a badge looks. Its colour is never alone: each badge has its word. */
export type Tone = 'good' | 'warn' | 'bad' | 'quiet' | 'active'

type Word = { readonly word: string; readonly tone: Tone }

export const conditionWords: Readonly<Record<Condition, Word>> = {
  failing: { word: 'failing', tone: 'bad' },
  gone: { word: 'gone (410)', tone: 'bad' },
  auto_paused: { word: 'paused by Sluice', tone: 'bad' },
  paced: { word: 'paced', tone: 'warn' },
  paused: { word: 'paused', tone: 'warn' },
  unknown: { word: 'unknown', tone: 'quiet' },
  healthy: { word: 'healthy', tone: 'good' },
  off: { word: 'off', tone: 'quiet' },
}

export const stateWords: Readonly<Record<State, string>> = {
  on: 'on',
  off: 'off',
  paused: 'paused',
  auto_paused: 'paused by Sluice',
}

export const deliveryWords: Readonly<Record<DeliveryState, Word>> = {
  delivered: { word: 'delivered', tone: 'good' },
  dead: { word: 'dead letter', tone: 'bad' },
  superseded: { word: 'superseded', tone: 'quiet' },
  suppressed: { word: 'suppressed', tone: 'quiet' },
  omitted: { word: 'omitted', tone: 'quiet' },
  filtered: { word: 'filtered', tone: 'quiet' },
  waiting: { word: 'waiting', tone: 'warn' },
  under_way: { word: 'under way', tone: 'active' },
}

export const replayWords: Readonly<Record<ReplayState, Word>> = {
  waiting: { word: 'waiting', tone: 'warn' },
  running: { word: 'running', tone: 'active' },
  delivering: { word: 'delivering', tone: 'active' },
  stopped: { word: 'stopped', tone: 'bad' },
  done: { word: 'done', tone: 'good' },
}

/** What a destination would do with a message. */
export const triedWords: Readonly<Record<Previewed['result'], Word>> = {
  passes: { word: 'match', tone: 'good' },
  excluded: { word: 'no match', tone: 'quiet' },
  missing_field: { word: 'absent or other type', tone: 'warn' },
  not_sampled: { word: 'not in the sample', tone: 'quiet' },
  failed: { word: 'error', tone: 'bad' },
  mapping_failed: { word: 'error in the mapping', tone: 'bad' },
  refused: { word: 'refused', tone: 'bad' },
}

/** Says in a few words what a record of the delivery log tells. */
export function recordText(record: LogRecord): string {
  switch (record.kind) {
    case 'attempted':
      return outcomeText(record)
    case 'parked':
      return record.dueAt === null ? 'waits for its turn' : 'waits for its next try'
    case 'delivered':
      return 'delivered'
    case 'dead':
      return `dead letter: ${record.reason ?? 'unknown'}`
    case 'superseded':
      return 'a newer value is sent instead'
    case 'suppressed':
      return 'its user was deleted'
    case 'omitted':
      return `not sent: ${record.reason ?? 'another URL took it'}`
    case 'filtered':
      return `not for this destination: ${record.reason ?? 'filtered'}`
  }
}

/** Says what came of a request: `503`, `timeout`, `connection ECONNREFUSED`. */
export function outcomeText({ outcome, status, error }: LogRecord): string {
  if (status !== null) return String(status)
  return [outcome ?? 'unknown', error].filter((part) => part !== null).join(' ')
}

export function recordTone(record: LogRecord): Tone {
  switch (record.kind) {
    case 'attempted':
      if (record.verdict === 'delivered') return 'good'
      return record.verdict === 'retry' ? 'warn' : 'bad'
    case 'delivered':
      return 'good'
    case 'dead':
      return 'bad'
    case 'parked':
      return 'warn'
    case 'superseded':
    case 'suppressed':
    case 'omitted':
    case 'filtered':
      return 'quiet'
  }
}
