import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  isVersion,
  planRelease,
  prepareFiles,
  type ReleaseState,
  type VersionFiles,
} from '../../../scripts/release-plan.ts'

const root = resolve(import.meta.dirname, '../../..')
const head = 'a'.repeat(40)

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** The files of this project that name its version. */
const present: VersionFiles = {
  'package.json': read('package.json'),
  'package-lock.json': read('package-lock.json'),
  'deploy/helm/sluice/Chart.yaml': read('deploy/helm/sluice/Chart.yaml'),
  'CHANGELOG.md': read('CHANGELOG.md'),
}

const changelog = `# Changelog

## Unreleased

## 2.0.0 - 2026-11-23

### Added

- This.

## 1.0.0 - 2026-01-01

- That.
`
const files: VersionFiles = {
  ...prepareFiles(present, '2.0.0', '2026-11-23'),
  'CHANGELOG.md': changelog,
}
const sound: ReleaseState = { files, status: '', head, tagged: undefined, expectedTag: undefined }

function faultsOf(state: Partial<ReleaseState>): readonly string[] {
  return planRelease({ ...sound, ...state }).faults
}

test('what is prepared can be released, with the section of its version as notes', () => {
  expect(planRelease(sound)).toEqual({
    version: '2.0.0',
    tag: 'v2.0.0',
    notes: '### Added\n\n- This.\n',
    faults: [],
  })
})

describe('what is prepared', () => {
  const prepared = prepareFiles(present, '2.0.0-rc.1', '2026-11-23')

  test('says the version wherever it is named, and nothing else is changed', () => {
    expect(JSON.parse(prepared['package.json'])).toEqual({
      ...JSON.parse(present['package.json']),
      version: '2.0.0-rc.1',
    })
    const lock = JSON.parse(present['package-lock.json'])
    lock.version = '2.0.0-rc.1'
    lock.packages[''].version = '2.0.0-rc.1'
    expect(JSON.parse(prepared['package-lock.json'])).toEqual(lock)
    expect(prepared['deploy/helm/sluice/Chart.yaml']).toContain(
      'version: 2.0.0-rc.1\nappVersion: 2.0.0-rc.1\n',
    )
  })

  test('has what was unreleased under its own heading; twice is once', () => {
    const [before, unreleased] = present['CHANGELOG.md'].split('## Unreleased\n')
    expect(unreleased).toMatch(/\S/)
    expect(prepared['CHANGELOG.md']).toBe(
      `${before}## Unreleased\n\n## 2.0.0-rc.1 - 2026-11-23\n${unreleased}`,
    )
    expect(prepareFiles(prepared, '2.0.0-rc.1', '2026-11-24')).toEqual(prepared)
  })
})

describe('it is refused, with what to do', () => {
  test('where the tree has changes', () => {
    expect(faultsOf({ status: ' M src/main.ts\n?? new\n' })).toEqual([
      'the tree has changes: commit or remove them\n M src/main.ts\n?? new',
    ])
  })

  test('where the tag exists, on whatever commit', () => {
    expect(faultsOf({ tagged: head })).toEqual(['the tag v2.0.0 exists: raise the version'])
  })

  test.each<[keyof VersionFiles, RegExp, string]>([
    ['package-lock.json', /^( {2}"version": )".*"/m, '$1"1.0.0"'],
    ['package-lock.json', /^( {6}"version": )".*"/m, '$1"1.0.0"'],
    ['deploy/helm/sluice/Chart.yaml', /^version: .*/m, 'version: 1.0.0'],
    ['deploy/helm/sluice/Chart.yaml', /^appVersion: .*/m, 'appVersion: 1.0.0'],
  ])('where %s says another version at %s', (file, pattern, other) => {
    const faults = faultsOf({ files: { ...files, [file]: files[file].replace(pattern, other) } })
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain('says 1.0.0, package.json 2.0.0: run npm run release -- --prepare 2.0.0')
  })

  test.each([
    ['has no section of it', changelog.replace('## 2.0.0 - 2026-11-23\n', ''), 'has no section'],
    ['has an empty one', changelog.replace('- This.\n', ''), 'is empty'],
    [
      'has entries left',
      changelog.replace('## Unreleased\n', '## Unreleased\n\n- More.\n'),
      'Unreleased has entries',
    ],
  ])('where the changelog %s', (_what, text, fault) => {
    const faults = faultsOf({ files: { ...files, 'CHANGELOG.md': text } }).join('\n')
    expect(faults).toContain(fault)
  })

  test('with all reasons at once', () => {
    expect(faultsOf({ status: '?? x', tagged: head })).toHaveLength(2)
  })
})

describe('in a workflow, where the tag is there', () => {
  test('it is made of the commit that has it', () => {
    expect(faultsOf({ tagged: head, expectedTag: 'v2.0.0' })).toEqual([])
  })

  test.each([
    [{ tagged: 'b'.repeat(40), expectedTag: 'v2.0.0' }, `the tag v2.0.0 is not on ${head}`],
    [{ tagged: head, expectedTag: 'v2.0.1' }, 'the tag is v2.0.1, and the version asks for v2.0.0'],
    [{ tagged: undefined, expectedTag: 'v2.0.0' }, 'there is no tag v2.0.0'],
  ])('and of no other', (state, fault) => {
    expect(faultsOf(state)[0]).toContain(fault)
  })
})

test.each(['1.2', 'v1.2.3', '1.2.3+build', '01.2.3', '1.2.3-', ''])('%j is no version', (text) => {
  expect(isVersion(text)).toBe(false)
})
