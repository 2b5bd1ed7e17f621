import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { isSystemError } from './system-error.ts'

/** A process that ends when this process ends, even if this process is killed. */
export type Tethered = {
  readonly pid: number
  /**
   * Resolves with the exit code once the process has ended. A code above 128 means that a signal has ended
   * the process.
   */
  readonly exited: Promise<number>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

/**
 * A shell script that runs the command. Nobody writes to the pipe at its standard input. The pipe closes when
 * this process ends, even if it ends by SIGKILL, so the script notices the end. (If the script looked for the
 * pid of this process, it would notice the end later, because the pid exists until somebody has asked for the
 * exit code.) The script writes the pid of the command to standard output, and all output of the command to
 * the log file.
 */
const script = `
exec 3<&0 2>>"$1"
scratch=$2
shift 2
"$@" </dev/null >&2 3<&- &
child=$!
echo "$child"
{ read -r line <&3; [ -z "$scratch" ] || touch "$scratch/orphaned"; kill "$child"; sleep 10; kill -9 "$child"; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$child"
code=$?
kill "$watcher" 2>/dev/null
[ -z "$scratch" ] || [ ! -e "$scratch/orphaned" ] || rm -rf "$scratch"
exit "$code"
`

/**
 * Starts a command that ends when this process ends. The command's output is appended to `logFile`. If the
 * command doesn't exist, the exit code is 127. If this process ends before the command, the folder `scratch`
 * is removed.
 */
export async function startTethered(
  command: string,
  args: readonly string[],
  { logFile, scratch = '' }: { logFile: string; scratch?: string | undefined },
): Promise<Tethered> {
  // The shell is detached, so that Ctrl-C in a terminal reaches only this process. This process then stops
  // the command in good order.
  const shell = spawn('sh', ['-c', script, 'sh', logFile, scratch, command, ...args], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  })
  const exited = new Promise<number>((resolve) => shell.once('exit', (code) => resolve(code ?? 137)))
  await once(shell, 'spawn')
  const pid = await readPid(shell.stdout)
  return { pid, exited, kill: (signal) => sendSignal(pid, signal) }
}

async function readPid(output: Readable): Promise<number> {
  for await (const line of output) return Number(String(line))
  throw new Error('the shell ended before it had started anything')
}

function sendSignal(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!isSystemError(error, 'ESRCH')) throw error
  }
}

/** Returns the last lines of a log, for the text of an error. */
export async function lastLines(file: string, count = 15): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '(no log)')
  return text.trimEnd().split('\n').slice(-count).join('\n')
}
