import { beforeAll, expect, test } from 'vitest'
import { pino } from 'pino'
import { readCondition } from '../../../src/roles/content/body-condition.ts'
import { scanEvents, type ScanOptions } from '../../../src/commands/log/log-scan.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'
import { newIds, setScene } from '../../e2e/scene.ts'
import { produce } from '../../support/kafka.ts'

let config: Config
const ids = newIds(5)

beforeAll(async () => {
  const scene = await setScene({ catalog: { sources: [{ id: 'shop' }], destinations: [] } })
  const read = readConfig({ env: scene.variables })
  if (!read.ok) throw new Error(read.message)
  config = read.config
  const orders = ['4711', 4711, '4712', '4711', '4711']
  const records = orders.map((orderId, at) => ({
    key: `u${at}`,
    value: JSON.stringify({
      type: at === 4 ? 'no-such-type' : 'track',
      userId: `u${at}`,
      event: 'Order',
      messageId: ids[at],
      properties: { orderId, products: [{ sku: 'A-1' }, { sku: `B-${at}` }] },
    }),
    headers: { 'source-id': at === 3 ? 'other' : 'shop' },
  }))
  await produce(`${scene.prefix}events`, [...records, { key: 'x', value: 'not JSON' }])
  return () => scene.close()
})

const sorted = (texts: readonly string[]): string[] => texts.toSorted((a, b) => (a < b ? -1 : 1))

type Told = { ids: string[]; said: string; isComplete: boolean }

async function scan(conditions: readonly string[], more: Partial<ScanOptions> = {}): Promise<Told> {
  const found: string[] = []
  let said = ''
  const { isComplete } = await scanEvents(config, pino({ level: 'silent' }), {
    fromMs: Date.now() - 3_600_000,
    toMs: undefined,
    conditions: conditions.map(readCondition),
    source: undefined,
    text: undefined,
    mostFound: 100,
    mostRead: 1_000,
    isJson: true,
    write: (line) => void found.push(String(JSON.parse(line).messageId)),
    screen: {
      isTerminal: false,
      columns: () => 80,
      write: (text) => (said += text),
      redraw: () => undefined,
    },
    signal: new AbortController().signal,
    ...more,
  })
  return { ids: sorted(found), said, isComplete }
}

const of = (...wanted: number[]) => sorted(wanted.map((at) => String(ids[at])))

test('a scan finds the messages of a range of time that say what is asked, also those that were refused', async () => {
  expect((await scan(['properties.orderId=4711'])).ids).toEqual(of(0, 1, 3, 4))
  expect((await scan(['properties.orderId=4711'], { source: 'shop' })).ids).toEqual(of(0, 1, 4))
  expect((await scan(['properties.products.sku=B-2', 'userId=u2'])).ids).toEqual(of(2))
  expect((await scan([], { text: '"4712"' })).ids).toEqual(of(2))
})

test('what is outside of the range is not read', async () => {
  const all = await scan(['event=Order'], { fromMs: 0 })
  expect([all.ids, all.isComplete]).toEqual([of(0, 1, 2, 3, 4), true])
  expect(await scan(['event=Order'], { toMs: Date.now() - 60_000 })).toMatchObject({
    ids: [],
    isComplete: true,
  })
})

test('a scan ends at its limits, and says where to go on', async () => {
  const found = await scan(['event=Order'], { mostFound: 2 })
  expect([found.ids.length, found.isComplete]).toEqual([2, false])
  expect(found.said).toMatch(/up to --limit\. To read on: --from \d{4}-/)
  const read = await scan(['event=Nothing'], { mostRead: 3 })
  expect([read.ids, read.isComplete, read.said]).toEqual([[], false, expect.stringContaining('--max-read')])
})
