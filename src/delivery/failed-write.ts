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
  let last: { readonly done: Done; readonly later: Done } | undefined

  /** A stream passes the same callback with all of its writes, so that its wrapper is made only once. */
  function afterReading(done: Done): Done {
    if (last?.done !== done) last = { done, later: (error) => tell(done, error) }
    return last.later
  }

  socket._write = (chunk, encoding, done) => write(chunk, encoding, afterReading(done))
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, afterReading(done))
}

function tell(done: Done, error?: Error | null): void {
  if (error === undefined || error === null || !isLost(error)) done(error)
  // The first immediate runs in the present turn of the event loop. The second immediate runs after the
  // next turn has read from all sockets.
  else setImmediate(() => setImmediate(done, error))
}

/** Returns true if a write failed because the other side has closed or reset the connection. */
function isLost(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET')
}
