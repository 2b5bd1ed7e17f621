import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'

/** Tells how much room there was at most for what is young, in MiB, in a process of which much lives for long. */
const program = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { tuneGarbageCollector } from '${new URL('../../../src/roles/garbage-collector.ts', import.meta.url).href}'
  tuneGarbageCollector()
  const living = []
  let most = 0
  let made = 0
  const timer = setInterval(() => {
    for (let more = 0; more < 3_000; more++) living[made++ % 60_000] = { made, more: [made, more] }
    const { space_used_size: used, space_available_size: free } =
      getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
    most = Math.max(most, (used + free) / 1024 ** 2)
    if (made < 3_000_000) return
    clearInterval(timer)
    console.log(most)
  }, 1)`

test('the room for what is young grows to 16 MiB and no further, whatever the machine would allow', () => {
  const args = ['--max-semi-space-size=64', '--input-type=module', '--eval', program]
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })
  expect(Math.round(Number(output))).toBe(16)
})
