import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { dependencyFaults } from '../../../scripts/dependencies.ts'
import type { LockedPackage } from '../../../scripts/project-files.ts'

const sound: LockedPackage = { version: '1.0.0', license: 'MIT', integrity: 'sha512-x' }

function faultsOf(entry: LockedPackage, allowScripts: Record<string, boolean> = {}): readonly string[] {
  return dependencyFaults({
    packages: {
      '': {},
      'node_modules/sound': sound,
      'node_modules/a/node_modules/@b/c': { ...sound, ...entry },
    },
    allowScripts,
  })
}

describe('a licence', () => {
  test.each([
    'MIT',
    'Apache-2.0',
    'ISC',
    '(MIT OR GPL-3.0-only)',
    'GPL-3.0-only OR BSD-3-Clause',
    'MIT AND ISC',
  ])('%s is let pass', (license) => {
    expect(faultsOf({ license })).toEqual([])
  })

  test.each([
    'GPL-3.0-only',
    'AGPL-3.0-or-later',
    'SSPL-1.0',
    'BUSL-1.1',
    'MPL-2.0',
    'UNLICENSED',
    'SEE LICENSE IN LICENSE.txt',
    'MIT AND GPL-3.0-only',
    '(MIT AND (GPL-2.0-only OR ISC))',
    'mit',
    '',
  ])('%j is refused', (license) => {
    expect(faultsOf({ license })).toEqual([expect.stringContaining(`@b/c 1.0.0 is under ${license}, `)])
  })

  test('that is not named is refused', () => {
    const { license: _license, ...without } = sound
    expect(dependencyFaults({ packages: { 'node_modules/a': without }, allowScripts: {} })).toEqual([
      expect.stringContaining('a 1.0.0 is under no licence'),
    ])
  })

  describe('that was read in the package', () => {
    const { license: _license, ...unnamed } = sound
    const packages = { 'node_modules/a': unnamed }

    test('stands in for one that is not named', () => {
      const read = { 'a@1.0.0': 'MIT' }
      expect(dependencyFaults({ packages, allowScripts: {}, readLicences: read })).toEqual([])
    })

    test('has to be allowed as well', () => {
      const read = { 'a@1.0.0': 'SSPL-1.0' }
      expect(dependencyFaults({ packages, allowScripts: {}, readLicences: read })).toEqual([
        expect.stringContaining('a 1.0.0 is under SSPL-1.0'),
      ])
    })

    test('is of one version only', () => {
      const read = { 'a@0.9.0': 'MIT' }
      expect(dependencyFaults({ packages, allowScripts: {}, readLicences: read })).toEqual([
        expect.stringContaining('a 1.0.0 is under no licence'),
        expect.stringContaining('readLicences names a@0.9.0'),
      ])
    })

    test('does not count where the package names one itself', () => {
      const named = { 'node_modules/a': { ...sound, license: 'GPL-3.0-only' } }
      const read = { 'a@1.0.0': 'MIT' }
      expect(dependencyFaults({ packages: named, allowScripts: {}, readLicences: read })).toEqual([
        expect.stringContaining('a 1.0.0 is under GPL-3.0-only'),
        expect.stringContaining('readLicences names a@1.0.0'),
      ])
    })
  })

  test('of what is not shipped is free', () => {
    expect(faultsOf({ license: 'GPL-3.0-only', dev: true })).toEqual([])
  })
})

describe('an install script', () => {
  test('that nobody has decided on is refused, in development too', () => {
    const expected = [expect.stringMatching(/^@b\/c 1\.0\.0 runs a script .* allowScripts/)]
    expect(faultsOf({ hasInstallScript: true })).toEqual(expected)
    expect(faultsOf({ hasInstallScript: true, dev: true })).toEqual(expected)
  })

  test.each([true, false])('that was decided on (%j) is let pass', (isAllowed) => {
    expect(faultsOf({ hasInstallScript: true }, { '@b/c': isAllowed })).toEqual([])
  })

  test('that is decided on and does not exist is told', () => {
    expect(faultsOf({}, { gone: true })).toEqual([expect.stringContaining('allowScripts names gone')])
  })
})

test.each([undefined, 'sha1-x'])('a package with the digest %j is refused', (integrity) => {
  const { integrity: _integrity, ...rest } = sound
  const entry = integrity === undefined ? rest : { ...rest, integrity }
  expect(dependencyFaults({ packages: { 'node_modules/a': entry }, allowScripts: {} })).toEqual([
    expect.stringContaining('a 1.0.0 has no SHA-512'),
  ])
})

describe('npm run check:dependencies', () => {
  const script = resolve(import.meta.dirname, '../../../scripts/check-dependencies.ts')

  function run(packages?: Record<string, LockedPackage>): { status: number | null; output: string } {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-dependencies-'))
    try {
      if (packages !== undefined) {
        writeFileSync(join(folder, 'package.json'), '{}')
        writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages }))
      }
      const args = packages === undefined ? [script] : [script, folder]
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
      return { status, output: stdout + stderr }
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  test('passes for this project', () => {
    expect(run()).toEqual({ status: 0, output: '' })
  })

  test('fails with every fault', () => {
    const { status, output } = run({
      '': {},
      'node_modules/a': { ...sound, license: 'SSPL-1.0', hasInstallScript: true },
    })
    expect(status).toBe(1)
    expect(output).toContain('a 1.0.0 is under SSPL-1.0')
    expect(output).toContain('a 1.0.0 runs a script')
  })

  test('fails when it sees no package', () => {
    expect(run({ '': {} })).toMatchObject({ status: 1, output: expect.stringContaining('no package') })
  })
})
