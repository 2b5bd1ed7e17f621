import type { Server } from 'node:net'
import process from 'node:process'

/** Makes a child process do what its parent sends it, and end with its parent. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the parent and its child agree on the commands
export function takeCommands<C>(handleCommand: (command: C) => void): void {
  process.on('message', handleCommand)
  process.on('disconnect', () => process.exit(0))
}

/** Listens on a free port of loopback, and tells the parent which. */
export function listenForParent(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? address?.port : undefined)
  })
}
