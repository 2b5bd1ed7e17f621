import { buildConnector } from 'undici'
import type { ConnectorOptions } from '../../../src/delivery/connector.ts'

/** Connects to whatever a URL says. */
export function createConnector({ timeoutMs }: ConnectorOptions): buildConnector.connector {
  return buildConnector({ timeout: timeoutMs, allowH2: false })
}
