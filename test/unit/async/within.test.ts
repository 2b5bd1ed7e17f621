import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { within } from '../../../src/async/within.ts'
import { standStill } from '../../support/stand-still.ts'

const timeoutMs = 100

/** A thread with a server that answers at once, while the thread of the test stands still. */
const answering = `
  const server = require('node:net').createServer((socket) => socket.once('data', () => socket.write('answer')))
  server.listen(0, '127.0.0.1', () =>
    require('node:worker_threads').parentPort.postMessage(server.address().port))
`

async function connected(): Promise<Socket> {
  const server = new Worker(answering, { eval: true })
  const [port]: unknown[] = await once(server, 'message')
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  onTestFinished(async () => {
    socket.destroy()
    await server.terminate()
  })
  return socket
}

test('an answer that came while the process was suspended came in time', async () => {
  const socket = await connected()
  const answered = within(timeoutMs, once(socket, 'data'))
  socket.write('question')
  await new Promise((resolve) => setImmediate(resolve))
  standStill(5 * timeoutMs)
  expect(await answered).toBe(true)
})

test('an answer that does not come is late', async () => {
  const socket = await connected()
  expect(await within(timeoutMs, once(socket, 'data'))).toBe(false)
})
