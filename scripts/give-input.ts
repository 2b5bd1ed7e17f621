import type { ChildProcess } from 'node:child_process'

/**
 * Writes all of a program's standard input, and closes it. A program may end before it has read its input, or
 * without reading any. Its exit code tells what became of it, so a closed pipe is no error here.
 */
export function giveInput({ stdin }: ChildProcess, input?: string): void {
  stdin?.on('error', () => {})
  if (input === undefined || input === '') stdin?.end()
  else stdin?.end(input)
}
