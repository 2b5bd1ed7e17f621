import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')

test.each([
  ['a time that is none', ['log', 'search', '--since', 'yesterday'], '--since'],
  ['a range that ends before it begins', ['log', 'stats', '--since', '1h', '--until', '2h'], '--since'],
  ['a number that is too large', ['log', 'search', '--limit', '1001'], '--limit'],
  ['a rate of nothing', ['replay', 'dead-letters', '--rate', '0'], '--rate'],
  ['a day that is none', ['replay', 'events', '--destination', 'crm', '--from', '2026-02-30'], '--from'],
  [
    'a replay that ends before it begins',
    ['replay', 'dead-letters', '--from', '2026-01-31', '--to', '2026-01-30'],
    '--to',
  ],
  ['a reason that no dead letter has', ['replay', 'dead-letters', '--reason', 'expird'], 'expired,'],
  ['a replay of all dead letters that nobody asked for', ['replay', 'dead-letters'], '--all'],
  ['a replay of all events that nobody asked for', ['replay', 'events', '--destination', 'crm'], '--all'],
  ['a dry run of what has none', ['topics', 'grow', '--clean', '--dry-run'], '--dry-run'],
  ['a growth that is to be abandoned and dry', ['topics', 'grow', '--abandon', '--dry-run'], '--dry-run'],
  ['a growth and the removal of old topics', ['topics', 'grow', '48', '--clean'], '--clean'],
  ['both ends of a growth', ['topics', 'grow', '--abandon', '--clean'], '--abandon'],
  ['a destination and all of them', ['destinations', 'resume', 'crm', '--all'], '--all'],
])('%s is wrong use: exit code 2', (_what, args, option) => {
  const { status, stderr } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' })
  expect(stderr).toMatch(/^sluice: [^\n]+\n$/)
  expect(stderr).toContain(option)
  expect(status).toBe(2)
})

function listTopics(args: readonly string[], variables: Record<string, string>): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [main, 'topics', 'list', ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...variables },
  })
}

test('a setting with a wrong value is wrong use if a flag gives the value, and not if a variable does', () => {
  const variable = { SLUICE_LOG_LEVEL: 'loud' }
  const [flag, both] = [listTopics(['--log-level', 'loud'], {}), listTopics(['--http-port', '-1'], variable)]
  expect(flag).toMatchObject({ status: 2, stderr: expect.stringContaining('flag --log-level gives "loud"') })
  expect(both).toMatchObject({ status: 1, stderr: expect.stringContaining('has 2 faults') })
  expect(listTopics([], variable).status).toBe(1)
})

test('what a log search lacks in the settings is no wrong use: exit code 1', () => {
  const args = ['log', 'search', '--user', 'u1']
  const { status, stderr } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' })
  expect(stderr).toContain('SLUICE_ATTEMPTS_USER_KEY')
  expect(status).toBe(1)
})
