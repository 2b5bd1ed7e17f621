// The modules of undici that delivery needs. undici's index would also load fetch, WebSocket, caches and
// mocks (decision 68). `test/unit/delivery/undici-paths.test.ts` checks that these modules and the index
// export the same objects.

declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici'
  export default Client
}
declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici'
  export default Pool
}
/** The function that undici's index adds to its dispatchers as the method `connect`. */
declare module 'undici/lib/api/api-connect.js' {
  import type { Dispatcher, Pool } from 'undici'
  export default function connect(
    this: Pool,
    options: Omit<Dispatcher.ConnectOptions, 'origin'>,
    callback: (error: Error | null, data: Dispatcher.ConnectData) => void,
  ): void
}
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export default buildConnector
}
