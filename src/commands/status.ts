import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import { assess } from '../roles/operations/destination-conditions.ts'
import { openPauseDesk } from '../roles/operations/pause-desk.ts'
import { readPicture } from '../roles/operations/picture.ts'
import { statusData, statusLines, statusOf } from '../roles/operations/status-text.ts'
import { askKafka } from '../roles/start/ask-kafka.ts'
import { readCatalogOrCopy } from '../roles/catalog/open-catalog.ts'
import type { Screen } from '../roles/start/progress.ts'
import { kafkaSettings } from '../roles/start/settings.ts'

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
    const [{ catalog, warnings }, picture] = await askKafka(config, reading)
    const status = statusOf(picture, assess(catalog, picture.pauses, picture.health), warnings)
    return asJson ? [JSON.stringify(statusData(status))] : statusLines(status)
  } finally {
    await desk.stop()
  }
}
