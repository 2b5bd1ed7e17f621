import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import { assess } from '../roles/operations/destination-conditions.ts'
import { openPauseDesk } from '../roles/operations/pause-desk.ts'
import { type Picture, readPicture } from '../roles/operations/picture.ts'
import { statusData, statusLines, statusOf } from '../roles/operations/status-text.ts'
import { askKafka } from '../roles/start/ask-kafka.ts'
import { readCatalogOrCopy } from '../roles/catalog/open-catalog.ts'
import type { Screen } from '../roles/start/progress.ts'
import { kafkaSettings } from '../roles/start/settings.ts'

/** The most destinations that a sentence names. */
const mostNamed = 20

/** Without a catalog, only the ids of the destinations are known. */
function whichFail({ health: { board } }: Picture): string {
  const ids = [...(board?.failing() ?? [])].toSorted()
  const named = [...ids.slice(0, mostNamed), ...(ids.length > mostNamed ? ['…'] : [])].join(', ')
  const known =
    ids.length === 0 ? 'Workers tell of none that fails.' : `Workers tell that these fail: ${named}.`
  return `Which destinations there are, and how they are. ${known}`
}

/** Says how the installation is: its workers, what waits, and which destinations need attention. */
export async function showStatus(
  { config, log, screen }: { config: Config; log: Logger; screen: Screen },
  { asJson }: { readonly asJson: boolean },
): Promise<readonly string[]> {
  kafkaSettings(config)
  const say = (line: string): void => screen.write(`${line}\n`)
  const desk = await openPauseDesk({ config, log, role: 'status', say })
  try {
    const reading = Promise.all([readCatalogOrCopy(config, log, 'status'), readPicture(desk, config)])
    const [read, picture] = await askKafka(config, reading)
    const status =
      read.catalog === undefined
        ? statusOf(picture, undefined, [read.faults, whichFail(picture)])
        : statusOf(picture, assess(read.catalog, picture.pauses, picture.health), read.warnings)
    return asJson ? [JSON.stringify(statusData(status))] : statusLines(status)
  } finally {
    await desk.stop()
  }
}
