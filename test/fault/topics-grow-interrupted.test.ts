import { expect, test } from 'vitest'
import { produce } from '../support/kafka.ts'
import { expectCopied, growUntilBegun, install } from '../support/growing.ts'
import { Random } from '../support/random.ts'
import { fill, standingOf } from '../support/stopped-installation.ts'
import { runSluice, runToEnd } from '../support/worker-process.ts'

test('killed at any moment, it goes on where it was: nothing is copied twice, nothing is left out', async () => {
  const installation = await install(3)
  const { prefix, groupId, variables } = installation
  const random = new Random(2)
  await fill(installation, { users: 4_000, waiting: 1_500, random })
  let kills = 0
  for (let killAfterMs = 600; ; killAfterMs += 150 + random.below(250)) {
    const { code, stderr } = await runToEnd(['topics', 'grow', '7'], variables, { killAfterMs })
    if (code === 0) break
    expect(stderr).not.toContain('sluice:')
    expect(code).toBe(null)
    kills++
  }
  expect(kills).toBeGreaterThanOrEqual(3)
  await expectCopied(prefix, groupId, 3, 7)
})

test('a growth that has begun can be abandoned: all is as it was, and the next one makes other topics', async () => {
  const installation = await install(3)
  const { prefix, groupId, variables, grow } = installation
  await fill(installation, { users: 4_000, waiting: 1_000, random: new Random(4) })
  const before = await standingOf(`${prefix}retry.1s`, groupId)
  await growUntilBegun(installation)
  const blocked = await runToEnd(['worker'], variables)
  expect(blocked.code).toBe(1)
  expect(blocked.stderr).toContain('`sluice topics grow 7`')
  expect((await grow('9')).stderr).toContain('A growth to 7 partitions is under way')
  const abandoned = await grow('--abandon')
  expect(abandoned).toMatchObject({ code: 0 })
  await runSluice(['topics', 'check'], variables)
  expect(await standingOf(`${prefix}retry.1s`, groupId)).toEqual(before)
  const grown = await grow('5')
  expect(grown.stdout).toContain('SLUICE_TOPICS_PARTITIONS=5 and SLUICE_TOPICS_GENERATION=3')
})

test('where somebody wrote to what is copied it goes no further', async () => {
  const installation = await install(3)
  const { prefix, grow } = installation
  await fill(installation, { users: 4_000, waiting: 1_000, random: new Random(6) })
  await growUntilBegun(installation)
  await produce(`${prefix}replays`, [{ partition: 0, value: 'late' }])
  const { code, stderr } = await grow('7')
  expect(code).toBe(1)
  expect(stderr).toContain('have changed since the growth began')
})
