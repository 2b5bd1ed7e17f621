import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'

/** Tests with the real npm and a registry of the test. */

const script = resolve(import.meta.dirname, '../../../scripts/audit.ts')
const name = 'leaky'
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-audit-'))
  const dependencies = { [name]: '1.0.0' }
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'project', version: '1.0.0', dependencies }),
  )
  const packages = {
    '': { name: 'project', version: '1.0.0', dependencies },
    [`node_modules/${name}`]: { version: '1.0.0', integrity: 'sha512-x' },
  }
  const lock = { name: 'project', version: '1.0.0', lockfileVersion: 3, requires: true, packages }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const json = (body: object): Script =>
  answer(200, { 'Content-Type': 'application/json' }, JSON.stringify(body))

function advisory(severity: string): object {
  return {
    [name]: [
      {
        id: 1,
        url: 'https://example.com/advisory',
        title: 'It leaks',
        severity,
        vulnerable_versions: '<2.0.0',
        cwe: [],
        cvss: { score: 0, vectorString: null },
      },
    ],
  }
}

const manifest = {
  name,
  'dist-tags': { latest: '1.0.0' },
  versions: { '1.0.0': { name, version: '1.0.0', dist: {} } },
}

async function audit(registry: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [script, folder], {
    env: {
      ...process.env,
      npm_config_registry: registry,
      // npm remembers what it made of an advisory, so each run gets a new cache.
      npm_config_cache: join(folder, randomUUID()),
      npm_config_fetch_retry_mintimeout: '10',
      npm_config_fetch_retry_maxtimeout: '20',
    },
  })
  const ended = new Promise<number | null>((resolveCode) => child.once('close', resolveCode))
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, output: stdout + stderr }
}

async function auditWith(advisories: Script): Promise<{ code: number | null; output: string }> {
  const registry: Receiver = await startReceiver({
    '/-/npm/v1/security/advisories/bulk': advisories,
    [`/${name}`]: json(manifest),
  })
  try {
    return await audit(registry.origin)
  } finally {
    await registry.stop()
  }
}

test.each(['high', 'critical'])('a known vulnerability that is %s fails', async (severity) => {
  const { code, output } = await auditWith(json(advisory(severity)))
  expect(output).toContain(`audit: ${severity}: ${name}: It leaks https://example.com/advisory`)
  expect(code).toBe(1)
})

test('one that is moderate is told', async () => {
  const { code, output } = await auditWith(json(advisory('moderate')))
  expect(output).toContain(`audit: moderate: ${name}: It leaks`)
  expect(output).toContain('0 of them high or critical')
  expect(code).toBe(0)
})

test('nothing known passes', async () => {
  const { code, output } = await auditWith(json({}))
  expect(output).toBe('audit: 0 packages with known vulnerabilities, 0 of them high or critical\n')
  expect(code).toBe(0)
})

test.each([404, 405, 500, 501])(
  'a registry that answers %i is no failure, and it is said',
  async (status) => {
    const { code, output } = await auditWith(answer(status, {}, 'no such thing'))
    expect(output).toMatch(/^audit: not done, the registry has no answer: .*\n$/)
    expect(code).toBe(0)
  },
)

test('a registry that can not be reached is no failure, and it is said', async () => {
  const { code, output } = await audit('http://127.0.0.1:1')
  expect(output).toMatch(/^audit: not done, the registry has no answer: .*\n$/)
  expect(code).toBe(0)
})
