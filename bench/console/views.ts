import { request } from 'node:http'
import process from 'node:process'
import { takeCommands } from '../support/command-process.ts'
import type { ViewsNews, ViewsPlan } from './views-process.ts'

/** Runs as a process (`views.ts PLAN`): opens live views, and counts what comes. */

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parent has written it
const { url, cookies } = JSON.parse(process.argv[2] ?? '{}') as ViewsPlan
let [open, bytes] = [0, 0]

takeCommands(() => {
  const news: ViewsNews = { open, bytes }
  process.send?.(news)
})
await Promise.all(cookies.map((cookie) => openView(cookie)))
process.send?.({ open })

function openView(cookie: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  request(url, { headers: { cookie }, agent: false }, (response) => {
    if (response.statusCode !== 200) return reject(new Error(`a view was refused: ${response.statusCode}`))
    open++
    response.on('data', (chunk: Buffer) => (bytes += chunk.length))
    response.on('close', () => open--)
    resolve()
  })
    .on('error', reject)
    .end()
  return promise
}
