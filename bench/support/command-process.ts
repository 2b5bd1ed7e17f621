import type { Server } from 'node:net'
import process from 'node:process'

/** Makes this child process handle the commands of its parent, and end with its parent. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- parent and child agree on commands
export function takeCommands<C>(handleCommand: (command: C) => void): void {
  process.on('message', handleCommand)
  process.on('disconnect', () => process.exit(0))
}

/** Listens on a free port of the loopback address, and sends the port to the parent. */
export function listenForParent(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? address?.port : undefined)
  })
}
