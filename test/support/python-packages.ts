import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../src/development/maven-download.ts'

const installTimeoutMs = 3 * 60_000

/**
 * Returns the folder of a PyPI package (`NAME==VERSION`), for `PYTHONPATH`. pip installs the package once,
 * into the same folder as Kafka's jars. Rejects if python3 or pip is missing, or if no registry can be
 * reached. So a test is never skipped silently.
 */
export async function pythonPackage(requirement: string): Promise<string> {
  const version = await python(['-c', 'import sys; print(sys.implementation.cache_tag)'])
  const folder = join(cacheFolder(), `${version.trim()}-${requirement.replace('==', '-')}`)
  if (await exists(folder)) return folder
  await mkdir(cacheFolder(), { recursive: true })
  const part = await mkdtemp(join(cacheFolder(), 'part-'))
  try {
    const target = join(part, 'packages')
    await python(['-m', 'pip', 'install', '--quiet', '--no-input', '--target', target, requirement])
    await moveInto(target, folder)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return folder
}

async function python(args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('python3', [...args], { timeout: installTimeoutMs })
    return stdout
  } catch (cause) {
    throw new Error(`python3 ${args.join(' ')} failed: is python3 installed, with pip?`, { cause })
  }
}

/**
 * Renames a folder. A rename happens as a whole or not at all. If another process has created `target` first,
 * the folder of that process is used.
 */
async function moveInto(source: string, target: string): Promise<void> {
  try {
    await rename(source, target)
  } catch (error) {
    if (!(await exists(target))) throw error
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
