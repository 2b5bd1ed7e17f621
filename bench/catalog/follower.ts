import { monitorEventLoopDelay } from 'node:perf_hooks'
import process from 'node:process'
import { readConfig } from '../../src/config/read.ts'
import { readCatalogTopic } from '../../src/roles/catalog/followed-topic.ts'
import type { FollowerCommand, FollowerNews } from './follower-process.ts'

/**
 * Follows the catalog's topic as a worker or a gateway does, and tells each version. When it is asked, it tells
 * how long its event loop was blocked since the last time.
 */

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const tell = (news: FollowerNews): void => void process.send?.(news)

const [settings = '{}'] = process.argv.slice(2)
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parent has written it
const config = readConfig({ env: JSON.parse(settings) as Record<string, string> })
if (!config.ok) throw new Error(config.message)
const delays = monitorEventLoopDelay({ resolution: 1 })
const read = await readCatalogTopic({ config: config.config, log: silent, role: 'worker' })
const topic = read.follow((catalog) => tell({ kind: 'version', version: catalog.version }))
delays.enable()
tell({ kind: 'ready' })
process.on('message', (command: FollowerCommand) => {
  if (command.kind !== 'blocked') return
  tell({ kind: 'blocked', ms: delays.max / 1e6, destinations: topic.current().destinations.size })
  delays.reset()
})
process.on('disconnect', () => void topic.stop().then(() => process.exit()))
