import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')
const mostBytes = 500 * 1024 ** 2

/** The sources of an earlier commit. They use the packages of the present checkout. */
export type EarlierVersion = {
  /** The file to give to `startSluice` as its program. */
  readonly program: string
  remove(): Promise<void>
}

/**
 * Unpacks the sources of a commit. Rejects with an error that says what to do if git doesn't have the commit
 * here.
 */
export async function takeEarlierVersion(commit: string): Promise<EarlierVersion> {
  const archive = await archiveOf(commit)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-earlier-'))
  const packed = join(folder, 'sources.tar')
  await writeFile(packed, archive)
  await run('tar', ['-xf', packed, '-C', folder])
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return {
    program: join(folder, 'src/main.ts'),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

async function archiveOf(commit: string): Promise<Buffer> {
  try {
    const { stdout } = await run('git', ['archive', '--format=tar', commit], {
      cwd: root,
      encoding: 'buffer',
      maxBuffer: mostBytes,
    })
    return stdout
  } catch (cause) {
    throw new Error(
      `the commit ${commit} is needed, to run workers of that version, and git does not have it here: run this test in a full clone (git fetch --unshallow), not in a tarball`,
      { cause },
    )
  }
}
