import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  namedChart,
  namedManifest,
  namedValues,
  namesOf,
  publisherFaults,
} from '../../../scripts/release-names.ts'
import { partsOf, type Push, pushCommands, pushFaults } from '../../../scripts/release-push.ts'

const root = resolve(import.meta.dirname, '../../..')
const publisher = {
  owner: 'Acme',
  registry: 'registry.example.com:5000',
  origin: 'git@git.example:team/sluice.git',
}
const acme = namesOf(publisher)
const nobody = namesOf({ owner: '', registry: '', origin: '' })

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

describe('the owner names', () => {
  test('package, image, chart and repository', () => {
    expect(acme).toEqual({
      package: '@acme/sluice',
      repository: 'https://git.example/Acme/sluice',
      image: 'registry.example.com:5000/acme/sluice',
      charts: 'oci://registry.example.com:5000/acme/charts',
    })
  })

  test.each([
    ['https://me:key@git.example/team/sluice.git', 'https://git.example/Acme/sluice'],
    ['ssh://git.example/team/sluice', ''],
    ['', ''],
  ])('the repository by the remote %j', (origin, repository) => {
    expect(namesOf({ ...publisher, origin }).repository).toBe(repository)
  })

  test('no image and no chart without a registry', () => {
    expect(namesOf({ ...publisher, registry: '' })).toMatchObject({
      package: '@acme/sluice',
      image: undefined,
      charts: undefined,
    })
  })
})

test('without an owner, all files stay as they are, and the package is private', () => {
  expect(namedManifest(read('package.json'), nobody)).toBe(read('package.json'))
  expect(JSON.parse(read('package.json'))).toMatchObject({ name: 'sluice', private: true })
  expect(namedChart(read('deploy/helm/sluice/Chart.yaml'), nobody)).toBe(
    read('deploy/helm/sluice/Chart.yaml'),
  )
  const values = read('deploy/helm/sluice/values.yaml')
  expect(namedValues(values, nobody, '1.2.3')).toBe(values)
})

test('with an owner, the package can be published, and says where it is at home', () => {
  const { private: _private, ...present } = JSON.parse(read('package.json'))
  expect(JSON.parse(namedManifest(read('package.json'), acme))).toEqual({
    ...present,
    name: '@acme/sluice',
    homepage: 'https://git.example/Acme/sluice',
    repository: { type: 'git', url: 'git+https://git.example/Acme/sluice.git' },
    bugs: 'https://git.example/Acme/sluice/issues',
  })
})

test.each([
  [{ owner: 'a/b' }, 'RELEASE_OWNER is a/b'],
  [{ owner: '@acme' }, 'RELEASE_OWNER is @acme'],
  [{ registry: 'https://registry.example.com' }, 'RELEASE_REGISTRY is https://'],
  [{ registry: 'registry.example.com/acme' }, 'RELEASE_REGISTRY is registry.example.com/acme'],
])('%j is refused', (wrong, said) => {
  expect(publisherFaults({ ...publisher, ...wrong })).toEqual([expect.stringContaining(said)])
  expect(publisherFaults(publisher)).toEqual([])
})

describe('what is pushed', () => {
  test.each([
    ['all', ['image', 'chart', 'package']],
    ['package', ['package']],
    ['package,image', ['image', 'package']],
    ['images', undefined],
    ['', undefined],
  ])('by --push %s', (text, expected) => {
    expect(partsOf(text)).toEqual(expected)
  })

  test('needs an owner, and the image and the chart a registry', () => {
    expect(pushFaults(['package'], nobody)).toEqual([expect.stringContaining('RELEASE_OWNER')])
    const { package: name, repository } = acme
    const alone = { package: name, repository, image: undefined, charts: undefined }
    expect(pushFaults(['package'], alone)).toEqual([])
    expect(pushFaults(['chart'], alone)).toEqual([expect.stringContaining('RELEASE_REGISTRY')])
  })
})

describe('the commands', () => {
  const push: Push = {
    names: acme,
    version: '1.2.3',
    commit: 'a'.repeat(40),
    date: '2026-01-01T00:00:00Z',
    folder: '/files',
    builder: 'docker',
    helm: 'helm',
    platforms: 'linux/amd64,linux/arm64',
    buildPlatform: 'linux/amd64',
    buildArgs: ['NODE_IMAGE=mirror.example.com/node:24'],
    isPlain: false,
  }

  test('of the image give the Dockerfile all arguments of the build, and keep its origin and its bill', () => {
    const [[...words] = []] = pushCommands('image', push)
    const said = words.join(' ')
    expect(said).toContain('docker buildx build --platform linux/amd64,linux/arm64 --file deploy/Dockerfile')
    expect(said).toContain('--provenance=mode=max --sbom=true --push')
    expect(said).toContain('--tag registry.example.com:5000/acme/sluice:1.2.3')
    const given = words.filter((_, at) => words[at - 1] === '--build-arg').map((one) => one.split('=')[0])
    expect(given).toEqual(['BUILD_COMMIT', 'BUILD_DATE', 'BUILD_VERSION', 'BUILD_SOURCE', 'NODE_IMAGE'])
    for (const name of given) expect(read('deploy/Dockerfile')).toMatch(new RegExp(`^ARG ${name}\\b`, 'm'))
  })

  test('of the package mark a version before its release as next', () => {
    expect(pushCommands('package', push)[0]).toContain('latest')
    const [command = []] = pushCommands('package', { ...push, version: '1.2.3-rc.1' })
    expect(command.slice(0, 3)).toEqual(['npm', 'publish', '/files/sluice-1.2.3-rc.1.tgz'])
    expect(command).toContain('next')
  })

  test('of the chart push the file of the release', () => {
    expect(pushCommands('chart', push)).toEqual([
      ['helm', 'push', '/files/sluice-chart-1.2.3.tgz', 'oci://registry.example.com:5000/acme/charts'],
    ])
  })
})
