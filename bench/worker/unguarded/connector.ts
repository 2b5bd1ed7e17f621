import { buildConnector } from 'undici'
import type { ConnectorOptions } from '../../../src/delivery/connect/guarded-connector.ts'

export { createAddressing } from '../../../src/delivery/connect/guarded-connector.ts'

/** Returns a connector that connects to every address, without the address policy. */
export function createConnector({ timeoutMs }: ConnectorOptions): buildConnector.connector {
  return buildConnector({ timeout: timeoutMs, allowH2: false })
}
