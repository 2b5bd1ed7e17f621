import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'

const collector = new URL('../../../../src/roles/start/garbage-collector.ts', import.meta.url).href

/**
 * Returns the largest room for young objects, in MiB, in a process that makes `objects` objects. The process
 * makes `perTick` of them every `tickMs` milliseconds. The last 60,000 of them are alive.
 */
function mostRoomMb(objects: number, { perTick, tickMs }: { perTick: number; tickMs: number }): number {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { growYoungRoomWhenBusy, holdYoungRoom } from '${collector}'
    holdYoungRoom()
    growYoungRoomWhenBusy()
    const living = []
    let most = 0
    let made = 0
    const timer = setInterval(() => {
      for (let more = 0; more < ${perTick}; more++) living[made++ % 60_000] = { made, more: [made, more] }
      const { space_used_size: used, space_available_size: free } =
        getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
      most = Math.max(most, (used + free) / 1024 ** 2)
      if (made < ${objects}) return
      clearInterval(timer)
      console.log(most)
    }, ${tickMs})`
  const args = ['--max-semi-space-size=64', '--input-type=module', '--eval', program]
  return Math.round(Number(execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })))
}

test('the room for young objects of a busy process grows to 16 MiB and no further, whatever the machine would allow', () => {
  expect(mostRoomMb(3_000_000, { perTick: 3_000, tickMs: 1 })).toBe(16)
})

test('the room for young objects stays at 1 MiB while a process does little', () => {
  expect(mostRoomMb(60_000, { perTick: 400, tickMs: 20 })).toBe(1)
})
