import { request } from 'node:http'
import process from 'node:process'
import { takeCommands } from '../support/command-process.ts'
import type { ViewsNews, ViewsPlan } from './views-process.ts'

/**
 * Runs as a process (`views.ts PLAN`): opens live views, each of a destination, and asks what the page of a
 * destination asks besides: its answers of the last hour, every 20 s. How the destination is comes by the live
 * view. A browser would need far more than this process, but on somebody else's machine.
 */

/** The page of a destination asks so often (`destination-overview.tsx`). */
const askEveryMs = 20_000
const hourMs = 3_600_000

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parent has written it
const { origin, cookies, destinations } = JSON.parse(process.argv[2] ?? '{}') as ViewsPlan
let [open, bytes, states, asked] = [0, 0, 0, 0]
const stateMark = Buffer.from('event: destination')

takeCommands(() => {
  const news: ViewsNews = { open, bytes, states, asked }
  process.send?.(news)
})
await Promise.all(cookies.map((cookie, at) => openView(cookie, destinations[at % destinations.length] ?? '')))
for (const [at, cookie] of cookies.entries()) {
  const destination = destinations[at % destinations.length] ?? ''
  // People don't open their pages at the same moment.
  setTimeout(
    () => setInterval(() => void ask(cookie, destination), askEveryMs),
    (at / cookies.length) * askEveryMs,
  )
}
process.send?.({ open })

function openView(cookie: string, destination: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const url = `${origin}/v1/live?destination=${destination}`
  request(url, { headers: { cookie }, agent: false }, (response) => {
    if (response.statusCode !== 200) return reject(new Error(`a view was refused: ${response.statusCode}`))
    open++
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (chunk.includes(stateMark)) states++
    })
    response.on('close', () => open--)
    resolve()
  })
    .on('error', reject)
    .end()
  return promise
}

async function ask(cookie: string, destination: string): Promise<void> {
  const from = new Date(Date.now() - hourMs).toISOString()
  const response = await fetch(`${origin}/v1/log/stats`, {
    method: 'POST',
    headers: { cookie, origin, 'content-type': 'application/json' },
    body: JSON.stringify({ from, step: '1m', groupBy: 'status', destination, top: 20 }),
  })
  await response.text()
  if (response.ok) asked++
}
