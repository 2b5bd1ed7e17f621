import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../telemetry/build-info.ts'
import { ownCommand } from '../../workshop/own-command.ts'

/**
 * A command of Sluice that a line tells people to run: at the beginning of the line or of a column, after a
 * colon, a parenthesis or `&&`, or after a backtick. A text in quotation marks, such as what a message says,
 * is none.
 */
const told = /(?<=^|`| {2}|: |&& |\()sluice (?=[a-z])/g

/**
 * Returns a line whose commands begin as a person in this folder calls Sluice, such as `npx sluice status` in
 * a project that has installed it. Lines say `sluice status`, because their writers don't know who reads them
 * where.
 */
export function asCalled(line: string, call: string = callHere()): string {
  return line.replaceAll(told, `${call} `)
}

let known: string | undefined

/** Looks once, because the folder of a process stays the same. */
function callHere(): string {
  return (known ??= ownCommand(process.cwd(), fileURLToPath(packageFolder)))
}
