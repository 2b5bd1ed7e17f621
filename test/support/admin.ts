import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runSluice } from './worker-process.ts'

export type AdminTokens = {
  /** The path of the file from which an admin API reads the tokens. */
  readonly file: string
  readonly read: string
  readonly operate: string
  readonly admin: string
  remove(): void
}

/** Creates one token for each right with the command that an operator uses. */
export async function makeTokens(): Promise<AdminTokens> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tokens-'))
  const file = join(folder, 'tokens')
  const lines: string[] = ['# who may do what', '']
  const make = async (right: string): Promise<string> => {
    const args = ['admin', 'token', 'create', '--name', `${right}-er`, '--right', right]
    const { stdout, stderr } = await runSluice(args, {})
    // Standard output has nothing but the line, so that it can be appended to the file.
    lines.push(stdout.trimEnd())
    return /: (sluice_\S+)$/m.exec(stderr)?.[1] ?? ''
  }
  const tokens = { read: await make('read'), operate: await make('operate'), admin: await make('admin') }
  writeFileSync(file, lines.join('\n'))
  return { file, ...tokens, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
