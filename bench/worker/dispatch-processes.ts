import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'

/**
 * Runs `dispatch.ts` in several processes, each with a part of the messages (`node dispatch-processes.ts
 * PROCESSES ORIGIN MESSAGES IN_FLIGHT DESTINATIONS`). The additional cost compared with one process shows how
 * much of the additional cost of a worker with several processes comes from the machine.
 */

const [processes = '', origin = '', messages = '', ...rest] = process.argv.slice(2)
const count = Number(processes)
const children: ChildProcess[] = []
for (let number = 0; number < count; number++) {
  const first = Math.floor((Number(messages) * number) / count)
  const end = Math.floor((Number(messages) * (number + 1)) / count)
  const args = [origin, String(first), String(end - first), ...rest]
  children.push(fork(join(import.meta.dirname, 'dispatch.ts'), args))
}
process.on('exit', () => {
  for (const child of children) child.kill()
})
for (const child of children) child.on('exit', (code) => process.exit(code ?? 1))
process.on('SIGTERM', () => process.exit(0))
