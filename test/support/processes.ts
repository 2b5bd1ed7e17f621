import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'

export type RunningProcess = { pid: number; command: string }

/**
 * Returns the processes of this machine whose command contains the text. The command of a broker, for
 * example, contains the broker's folder.
 */
export function processesWith(text: string): RunningProcess[] {
  const all = existsSync('/proc/self/cmdline')
    ? globSync('/proc/[0-9]*').map((folder) => ({
        pid: Number(folder.slice('/proc/'.length)),
        command: readCommand(`${folder}/cmdline`),
      }))
    : execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
        .split('\n')
        .map((line) => ({ pid: Number.parseInt(line, 10), command: line }))
  return all.filter(({ command }) => command.includes(text))
}

function readCommand(file: string): string {
  try {
    return readFileSync(file, 'utf8').replaceAll('\0', ' ')
  } catch {
    // The process has ended in the meantime.
    return ''
  }
}
