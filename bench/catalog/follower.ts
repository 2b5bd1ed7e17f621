import process from 'node:process'
import { pino } from 'pino'
import { withChangedSince } from '../../src/catalog/auto-pause.ts'
import type { Catalog, Destination } from '../../src/catalog/catalog.ts'
import { changedDestinations } from '../../src/catalog/next-catalog.ts'
import { readConfig } from '../../src/config/read.ts'
import { givenAnotherChance } from '../../src/recall/edited-destinations.ts'
import { openCatalog } from '../../src/roles/catalog/open-catalog.ts'
import {
  growYoungRoomWhenBusy,
  holdYoungRoom,
  tuneGarbageCollector,
} from '../../src/roles/start/garbage-collector.ts'
import { createWorkerMetrics } from '../../src/telemetry/worker-metrics.ts'
import { Blocks } from './blocks.ts'
import type { FollowerCommand, FollowerNews } from './follower-process.ts'

/**
 * Follows the catalog's topic as a worker does: with its log, its metrics, and the copy on its disk. Tells each
 * version. When it is asked, it tells how long its event loop was blocked since the last time.
 */

const tell = (news: FollowerNews): void => void process.send?.(news)
const keep = (destination: Destination): Destination => destination

const [settings = '{}'] = process.argv.slice(2)
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parent has written it
const config = readConfig({ env: JSON.parse(settings) as Record<string, string> })
if (!config.ok) throw new Error(config.message)
holdYoungRoom()
tuneGarbageCollector()
growYoungRoomWhenBusy()
const log = pino({ level: 'info' }, pino.destination({ dest: '/dev/null', sync: false }))
const metrics = createWorkerMetrics({ perDestination: false })
const counts = 'destinations'
const catalog = await openCatalog({ config: config.config, metrics, log, role: 'worker', counts })
let inForce = withChangedSince(undefined, catalog.current(), keep)
catalog.onChange((read: Catalog, before: Catalog) => {
  const former = inForce
  inForce = withChangedSince({ read: before, catalog: former }, read, keep)
  givenAnotherChance(former.destinations, inForce.destinations, changedDestinations(former, inForce))
  tell({ kind: 'version', version: read.version })
})
catalog.inForce()
const blocks = new Blocks()
tell({ kind: 'ready' })
process.on('message', (command: FollowerCommand) => {
  if (command.kind !== 'blocked') return
  tell({ kind: 'blocked', ...blocks.take(), destinations: catalog.current().destinations.size })
})
process.on('disconnect', () => void catalog.stop().then(() => process.exit()))
