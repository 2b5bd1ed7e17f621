import process from 'node:process'

/**
 * The module `node:http`, without an import. An import reads all exports of the module. Reading the export
 * `WebSocket` loads Node's own copy of undici, with `fetch` and web streams: 14 MB and 60 ms of CPU in each
 * process. Types may be imported.
 */
export const http = process.getBuiltinModule('node:http')
