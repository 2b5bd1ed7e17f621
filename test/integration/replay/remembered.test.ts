import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { letterOf, writeLetters } from '../../support/dead-letters.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

let scene: Scene
let receiver: Receiver
let worker: SluiceProcess

beforeAll(async () => {
  receiver = await startReceiver(answer(200))
  const destinationOf = (id: string) => ({
    id,
    sources: ['shop'],
    hooks: [{ url: `${receiver.origin}/${id}` }],
  })
  scene = await setScene({
    catalog: { sources: [{ id: 'shop' }], destinations: ['erp', 'crm'].map(destinationOf) },
  })
  worker = await startSluice(scene.variables)
})

afterAll(async () => {
  await worker?.kill()
  scene.close()
  await receiver.stop()
})

async function writeDead(destinationId: string, messageIds: readonly string[]): Promise<void> {
  const letters = messageIds.map((messageId) =>
    letterOf({ destinationId, messageId, atMs: Date.now() }, scene.prefix),
  )
  await writeLetters(`${scene.prefix}dead-letters`, letters)
}

async function replay(...args: readonly string[]): Promise<string> {
  const { stdout } = await runSluice(['replay', 'dead-letters', ...args], scene.variables)
  await until('all is delivered', async () => (await scene.lag()) === 0)
  return stdout
}

function arrived(): string[] {
  return receiver.requests.map(({ body }): string => JSON.parse(String(body)).messageId).sort()
}

test('the same command sends nothing again, and a wider one only what no replay has sent; --again sends all', async () => {
  await writeDead('erp', ['a', 'b'])
  await writeDead('crm', ['c'])
  expect(await replay('--destination', 'erp')).toContain('2 records sent again')
  expect(await replay('--destination', 'erp')).toMatch(
    /left out 2 that another replay .*\nnothing to send\n$/,
  )
  expect(await replay('--all')).toContain('1 record sent again')
  expect(arrived()).toEqual(['a', 'b', 'c'])
  expect(await replay('--destination', 'erp', '--again')).toContain('2 records sent again')
  expect(arrived()).toEqual(['a', 'a', 'b', 'b', 'c'])
})

test('a worker leaves out what a replay sends that was asked for before, though both were counted before either', async () => {
  await writeDead('crm', ['d', 'e'])
  const before = arrived()
  await Promise.all([
    replay('--reason', 'expired', '--rate', '1'),
    replay('--destination', 'crm', '--rate', '1'),
  ])
  expect(arrived()).toEqual([...before, 'd', 'e'])
})
