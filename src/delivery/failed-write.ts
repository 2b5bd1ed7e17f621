import type { Socket } from 'node:net'

type Done = (error?: Error | null) => void

/**
 * Makes a socket read what has arrived before it reports that a write failed. A server may answer before it
 * has read the whole request, and then close the connection. If Sluice writes at that moment, the write fails
 * although the answer has arrived. Node destroys a socket whose write failed, and would drop this answer.
 */
export function readBeforeFailedWrite(socket: Socket): void {
  const write = socket._write.bind(socket)
  const writev = socket._writev?.bind(socket)
  socket._write = (chunk, encoding, done) => write(chunk, encoding, afterReading(done))
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, afterReading(done))
}

function afterReading(done: Done): Done {
  return (error) => {
    if (error === undefined || error === null || !isLost(error)) done(error)
    // The first immediate runs in the present turn of the event loop. The second immediate runs after the
    // next turn has read from all sockets.
    else setImmediate(() => setImmediate(done, error))
  }
}

/** Returns true if a write failed because the other side has closed or reset the connection. */
function isLost(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET')
}
