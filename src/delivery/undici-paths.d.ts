/**
 * The parts of undici that deliver, without the rest. undici's index also loads fetch, WebSocket, caches and
 * mocks (decision 68). `test/unit/delivery/undici-paths.test.ts` compares these parts with the index's.
 */
declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici'
  export default Client
}
declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici'
  export default Pool
}
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export default buildConnector
}
