import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ensureJars, findJars } from '../../../src/development/jars.ts'
import { until } from '../../support/until.ts'

let folder = ''
let cache = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  cache = join(folder, 'cache')
  vi.stubEnv('SLUICE_CACHE_DIR', cache)
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** Puts a program named `mvn` first on the PATH. In `script`, `$libs` is the folder for the jars. */
async function insteadOfMaven(script: string): Promise<void> {
  const programs = join(folder, 'programs')
  await mkdir(programs)
  const libs = 'for arg in "$@"; do case $arg in -DoutputDirectory=*) libs=${arg#*=};; esac; done'
  await writeFile(join(programs, 'mvn'), `#!/bin/sh\n${libs}\nmkdir -p "$libs"\n${script}\n`)
  await chmod(join(programs, 'mvn'), 0o755)
  vi.stubEnv('PATH', `${programs}:${process.env['PATH']}`)
}

const copyTwoJars = 'echo a > "$libs/a.jar"; echo b > "$libs/b.jar"'

test('jars are downloaded once, with a line of progress, and leave nothing else in the cache', async () => {
  await insteadOfMaven(`echo run >> "${folder}/runs"; ${copyTwoJars}`)
  const lines: string[] = []
  const jars = await ensureJars((line) => lines.push(line))
  expect((await readdir(jars)).toSorted()).toEqual(['a.jar', 'b.jar'])
  expect(await readdir(cache)).toEqual(['kafka-4.3.1'])
  expect(lines.at(0)).toContain(`into ${jars}`)
  expect(lines.at(-1)).toContain('2 files')

  lines.length = 0
  expect(await ensureJars((line) => lines.push(line))).toBe(jars)
  expect(lines).toEqual([])
})

test('two downloads at once end with one whole folder', async () => {
  await insteadOfMaven(`sleep 0.2; ${copyTwoJars}`)
  const [first, second] = await Promise.all([ensureJars(() => {}), ensureJars(() => {})])
  expect(first).toBe(second)
  expect(await readdir(cache)).toEqual(['kafka-4.3.1'])
  expect(await readdir(first)).toHaveLength(2)
})

test('a download that fails leaves no jars, and shows what Maven said', async () => {
  await insteadOfMaven('echo a > "$libs/a.jar"; echo no route to host; exit 3')
  await expect(ensureJars(() => {})).rejects.toThrow(/code 3.*no route to host/s)
  expect(await findJars()).toBeUndefined()
  expect(await readdir(cache)).toEqual([])
})

test('a process killed while it downloads leaves nothing, and its Maven ends', async () => {
  // The pid is written last. So when a test reads it, this download writes nothing more while its files are
  // removed.
  await insteadOfMaven(`echo a > "$libs/a.jar"; echo $$ > "${folder}/pid"; exec sleep 60`)
  const jarsModule = JSON.stringify(new URL('../../../src/development/jars.ts', import.meta.url).href)
  const program = `const { ensureJars } = await import(${jarsModule}); await ensureJars(() => {})`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'ignore' })
  const pid = await until('Maven runs', async () => {
    return Number(await readFile(join(folder, 'pid'), 'utf8'))
  })
  parent.kill('SIGKILL')
  await once(parent, 'exit')
  await until('Maven is gone', () => !isRunning(pid))
  await until('the cache is empty', async () => (await readdir(cache)).length === 0)
  expect(await findJars()).toBeUndefined()
})

test('what a killed download left is removed by a later one, but not while it may still be at work', async () => {
  await insteadOfMaven(copyTwoJars)
  await mkdir(join(cache, 'part-old'), { recursive: true })
  await mkdir(join(cache, 'part-young'))
  const longAgo = new Date(Date.now() - 2 * 3_600_000)
  await utimes(join(cache, 'part-old'), longAgo, longAgo)
  await ensureJars(() => {})
  expect((await readdir(cache)).toSorted()).toEqual(['kafka-4.3.1', 'part-young'])
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
