import { request } from 'node:http'
import process from 'node:process'
import { takeCommands } from '../support/command-process.ts'
import type { ViewsNews, ViewsPlan } from './views-process.ts'

/**
 * Runs as a process (`views.ts PLAN`): opens live views, each of a destination, and asks for its health when
 * something happens to it, as the console does.
 */

/** The pause of the console between two questions because of events. */
const pauseMs = 3_000

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parent has written it
const { origin, cookies, destinations } = JSON.parse(process.argv[2] ?? '{}') as ViewsPlan
let [open, bytes, asked] = [0, 0, 0]

takeCommands(() => {
  const news: ViewsNews = { open, bytes, asked }
  process.send?.(news)
})
await Promise.all(cookies.map((cookie, at) => openView(cookie, destinations[at % destinations.length] ?? '')))
process.send?.({ open })

function openView(cookie: string, destination: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let askedMs = -Infinity
  const url = `${origin}/v1/live?destination=${destination}`
  request(url, { headers: { cookie }, agent: false }, (response) => {
    if (response.statusCode !== 200) return reject(new Error(`a view was refused: ${response.statusCode}`))
    open++
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (performance.now() - askedMs < pauseMs) return
      askedMs = performance.now()
      void ask(cookie, destination)
    })
    response.on('close', () => open--)
    resolve()
  })
    .on('error', reject)
    .end()
  return promise
}

async function ask(cookie: string, destination: string): Promise<void> {
  const response = await fetch(`${origin}/v1/destinations/${destination}/health`, { headers: { cookie } })
  await response.text()
  if (response.ok) asked++
}
