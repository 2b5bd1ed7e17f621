import { dirname, join } from 'node:path'
import { configKeys } from '../../src/config/schema.ts'

export const partitions = 6
export const sharedSecret = 'a secret of thirty-two characters'

/**
 * Returns the `SLUICE_…` variables of every measured worker, without its group. All other settings are the
 * defaults.
 */
export function workerVariables({
  brokers,
  prefix,
  catalogFile,
}: {
  brokers: readonly string[]
  prefix: string
  catalogFile: string
}): Record<string, string> {
  return {
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_TOPICS_PARTITIONS: String(partitions),
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_CATALOG_FILE: catalogFile,
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
    SLUICE_HTTP_HOST: '127.0.0.1',
    SLUICE_HTTP_PORT: '0',
    ...processesVariable(1),
    // The state folder is next to the catalog, so that both are removed together.
    ...known('SLUICE_STATE_FOLDER', join(dirname(catalogFile), 'state')),
  }
}

/**
 * Returns the variable for the number of a worker's processes. Returns none if this version doesn't have the
 * setting.
 */
export function processesVariable(count: number): Record<string, string> {
  return known('SLUICE_WORKER_PROCESSES', String(count))
}

function known(variable: string, value: string): Record<string, string> {
  return configKeys.some((key) => key.variable === variable) ? { [variable]: value } : {}
}
