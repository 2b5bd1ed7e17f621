import { join } from 'node:path'
import { keptFiles } from './kept-files.ts'
import { workshopFolder } from './running.ts'

/**
 * The settings of a Sluice for development, by environment variable. They stand in for the defaults: what
 * somebody sets takes precedence. All servers listen on 127.0.0.1, because only this machine may reach a
 * Sluice whose token is printed on the terminal.
 *
 * @param hasCatalogFile whether there is a catalog file. Without one, destinations are kept in the topic.
 * @param hasUserKey whether somebody has set the key of user ids.
 */
export function workshopSettings({
  hasCatalogFile,
  hasUserKey,
}: {
  readonly hasCatalogFile: boolean
  readonly hasUserKey: boolean
}): Readonly<Record<string, string>> {
  return {
    ...(!hasCatalogFile && { SLUICE_CATALOG_SOURCE: 'topic' }),
    SLUICE_CATALOG_KEYS_FILE: keptFiles.catalogKeys,
    SLUICE_HTTP_HOST: '127.0.0.1',
    SLUICE_GATEWAY_HOST: '127.0.0.1',
    // No load balancer stands in front of the gateway.
    SLUICE_GATEWAY_SHUTDOWN_DELAY: '0s',
    SLUICE_STATE_FOLDER: join(workshopFolder, 'state'),
    SLUICE_ATTEMPTS_ANSWERS: 'true',
    // The field of the examples, so that `sluice log find 4711` finds an order at once.
    SLUICE_ATTEMPTS_INDEX: 'properties.orderId',
    ...(!hasUserKey && { SLUICE_ATTEMPTS_USER_KEY_FILE: keptFiles.userKey }),
  }
}
