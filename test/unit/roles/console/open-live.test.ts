import { createServer } from 'node:http'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { type LiveReplay, Live } from '../../../../src/roles/console/open-live.ts'
import type { Picture } from '../../../../src/roles/operations/picture.ts'
import { adminRequest } from '../../../support/admin-request.ts'
import { openView } from '../../../support/events.ts'
import { until } from '../../../support/until.ts'

const picture: Picture = {
  asOfMs: 0,
  pauses: { areKnown: true, has: () => false, goneHooks: () => [], pauseOf: () => undefined },
  health: { board: undefined, nowMs: 0 },
}

/** Serves live views of the replays that `replays` returns, without Kafka. */
async function serve(replays: () => Promise<readonly LiveReplay[]>) {
  const read = readConfig({ env: { SLUICE_ATTEMPTS_ENABLED: 'false' } })
  const parsed = parseCatalog('{ sources: [], destinations: [] }', { file: 'catalog.yaml' })
  if (!read.ok || !parsed.ok) throw new Error('the settings have faults')
  const said: string[] = []
  const write = (line: string): void => void said.push(Object(JSON.parse(line)).msg)
  const live = new Live({
    config: read.config,
    log: pino({ level: 'debug' }, { write }),
    catalog: () => parsed.catalog,
    followed: { current: async () => picture, assessed: () => [] },
    replays,
    onEnded: () => undefined,
  })
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    live.call(adminRequest()).stream?.(response)
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(Object(server.address()).port))
  })
  onTestFinished(async () => {
    await live.stop()
    server.closeAllConnections()
    server.close()
  })
  return { said, live, open: () => openView(`http://127.0.0.1:${port}/`) }
}

test('a view goes on after what it shows could not be read', async () => {
  let isDown = true
  let progress = 0
  const { said, open } = await serve(async () => {
    if (isDown) throw new Error('Kafka does not answer')
    return [{ id: 'r1', destination: 'crm', shownTo: () => ({ progress: ++progress }) }]
  })
  const view = await open()
  await until('it can not be read', () => said.length > 0)
  expect(new Set(said)).toEqual(new Set(['live views get no news of health and replays for now']))
  isDown = false
  await until('news come', () => view.events.some(({ name }) => name === 'replay'))
})

test('a view whose browser does not read is ended, and the log says so', async () => {
  let round = 0
  const { said, live, open } = await serve(async () => {
    const text = `${++round}`.padEnd(8_000_000, 'x')
    return [{ id: 'r1', destination: 'crm', shownTo: () => ({ text }) }]
  })
  const view = await open()
  view.pause()
  await until('it is ended', () =>
    said.includes('a live view was ended, because its browser does not read what it is sent'),
  )
  expect(live.count).toBe(0)
})
