import { describe, expect, test } from 'vitest'
import { joinedBy, type ConnectionState } from '../../../src/backfill/connected-spaces.ts'
import { firstSyncStep } from '../../../src/backfill/first-sync-step.ts'
import type { Standing } from '../../../src/backfill/standing.ts'

const told: Standing = { kind: 'told', upTo: 7 }
const assumed: Standing = { kind: 'told', upTo: 0 }
const syncing: Standing = { kind: 'syncing', upTo: 7, withLeft: false, after: ['vip', 'u1'], sent: 3 }
const parted: Standing = { kind: 'parted' }
const leftOut: Standing = { kind: 'left_out' }
const joints: readonly ConnectionState[] = ['none', 'on', 'paused', 'off']

/** Returns the step for each state of the connection. By default, the states are none, on, paused and off. */
function steps(
  standing: Standing | undefined,
  { isTracked = true, isComplete = false, isWanted = true } = {},
  connections = joints,
): unknown[] {
  return connections.map((connectionState) =>
    firstSyncStep({ connectionState, standing, isTracked, isComplete: () => isComplete, isWanted }),
  )
}

const ofPresent = { kind: 'sync', withLeft: false }
const ofAll = { kind: 'sync', withLeft: true }

describe('a connection', () => {
  test('that nothing is written of is new, and told who is present once the destination is on', () => {
    expect(steps(undefined)).toEqual(['nothing', 'note_new', 'note_new', 'note_new'])
    expect(steps({ kind: 'new' })).toEqual(['part', ofPresent, 'wait', 'wait'])
  })

  test('that was there before anything was written of its unit is taken for told', () => {
    const assume = 'assume_told'
    expect(steps(undefined, { isTracked: false })).toEqual(['nothing', assume, assume, assume])
    expect(steps(undefined, { isTracked: false, isWanted: false })).toEqual([
      'nothing',
      assume,
      assume,
      assume,
    ])
  })

  test('that was told stays so until it is parted', () => {
    expect(steps(told, { isComplete: true })).toEqual(['part', 'nothing', 'nothing', 'nothing'])
    expect(steps(assumed)).toEqual(['part', 'nothing', 'nothing', 'nothing'])
    expect(steps(leftOut)).toEqual(['part', 'nothing', 'nothing', 'nothing'])
  })

  test('that is switched off before all units have told it all begins anew in each of them', () => {
    expect(steps(told)).toEqual(['part', 'nothing', 'nothing', 'part'])
    expect(steps(syncing)).toEqual(['part', 'go_on', 'wait', 'part'])
  })

  test('waits while Sluice has paused the destination, as while the catalog has', () => {
    for (const standing of [{ kind: 'new' }, told, syncing, parted] as const)
      expect(steps(standing, {}, ['auto_paused'])).toEqual(steps(standing, {}, ['paused']))
  })

  test('that is back is told of those who have left too', () => {
    expect(steps(parted)).toEqual(['nothing', ofAll, 'wait', 'wait'])
  })

  test('is left out where that is set, and not told later by itself', () => {
    const leave = 'leave_out'
    const isWanted = false
    expect(steps(undefined, { isWanted })).toEqual(['nothing', leave, leave, leave])
    expect(steps({ kind: 'new' }, { isWanted })).toEqual(['part', leave, leave, leave])
    expect(steps(parted, { isWanted })).toEqual(['nothing', leave, leave, leave])
    expect(steps(syncing, { isWanted })).toEqual(['part', leave, leave, 'part'])
    expect(steps(leftOut)).toEqual(['part', 'nothing', 'nothing', 'nothing'])
  })
})

describe('what the catalog says of connections', () => {
  type Crm = { kind?: string; isEnabled?: boolean; state?: 'on' | 'off' | 'paused'; isConnected?: boolean }

  function jointOfCrm({ kind = 'audiences', isEnabled = true, state = 'on', isConnected = true }: Crm) {
    const joined = joinedBy({
      sources: new Map([
        ['fans', { kind, enabled: isEnabled }],
        ['shop', { kind: 'events', enabled: true }],
      ]),
      destinations: new Map([['crm', { state, sources: isConnected ? ['shop', 'fans'] : ['shop'] }]]),
    })
    return [...joined.values()]
  }
  const crm = { destinationId: 'crm', spaceId: 'fans' }

  test('is the state of the destination, and off where the space is disabled', () => {
    for (const state of ['on', 'off', 'paused'] as const)
      expect(jointOfCrm({ state })).toEqual([{ ...crm, connectionState: state }])
    expect(jointOfCrm({ isEnabled: false })).toEqual([{ ...crm, connectionState: 'off' }])
  })

  test('is nothing of sources of events, and of what is not connected', () => {
    expect(jointOfCrm({ kind: 'events' })).toEqual([])
    expect(jointOfCrm({ isConnected: false })).toEqual([])
  })
})
