import { dirname, join } from 'node:path'
import { configKeys } from '../../src/config/schema.ts'

export const partitions = 6
export const sharedSecret = 'a secret of thirty-two characters'

/** The `SLUICE_…` variables that every worker under measurement has, without its group; all else is the default. */
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
    // Beside the catalog, in the folder that is removed with it.
    ...known('SLUICE_STATE_FOLDER', join(dirname(catalogFile), 'state')),
  }
}

/** Says how many processes a worker runs, in a version that knows of it. */
export function processesVariable(count: number): Record<string, string> {
  return known('SLUICE_WORKER_PROCESSES', String(count))
}

function known(variable: string, value: string): Record<string, string> {
  return configKeys.some((key) => key.variable === variable) ? { [variable]: value } : {}
}
