import { expect, onTestFinished, test } from 'vitest'
import { answer, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'
import { newIds, setShopScene } from './scene.ts'

/** Returns an option of Node that moves the clock of a process, by `ms` milliseconds. */
function clockMovedBy(ms: number): string {
  const code = `const now = Date.now; Date.now = () => now() + ${ms}`
  return `--import=data:text/javascript,${encodeURIComponent(code)}`
}

test.each([
  [600, 'ahead of'],
  [-600, 'behind'],
])(
  'a worker whose clock is wrong by %i s says that it is %s the clock of a broker',
  async (seconds, which) => {
    const receiver = await startReceiver(answer(200))
    onTestFinished(() => receiver.stop())
    const scene = await setShopScene(`${receiver.origin}/hook`, {})
    const worker = await startSluice({ ...scene.variables, NODE_OPTIONS: clockMovedBy(seconds * 1_000) })
    onTestFinished(() => worker.kill())
    await scene.send('shop', newIds(10))
    const skew = () => worker.metric('sluice_clock_skew_seconds')
    await until('it has written to its log of deliveries', async () => (await skew()) !== 0)
    expect(Math.abs((await skew()) - Math.abs(seconds))).toBeLessThan(10)
    const said = await until('it says so', () => worker.log.find(({ msg }) => msg?.includes('of a broker')))
    expect(said).toMatchObject({ level: 'warn', broker: 1 })
    expect(said.msg).toContain(`is ${which} the clock of a broker`)
  },
)
