import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mappingMethods } from '../../../src/shape/definition.ts'

/**
 * Pages that say what can't be done, or only one of two ways, stay behind when a second way is added. Each test
 * is about one such claim, on all pages that make it.
 */
const root = resolve(import.meta.dirname, '../../..')
const pages = globSync(['README.md', 'SECURITY.md', 'docs/*.md', 'deploy/runbooks/*.md'], { cwd: root })
  .toSorted()
  .map((file) => [file, readFileSync(join(root, file), 'utf8').replaceAll(/\s+/g, ' ')] as const)

const methodsNamed = /[Mm]ethods (?:than|are) ([A-Z]{3,}(?:(?:, | and )[A-Z]{3,})*)/g

function saying(claim: RegExp): (readonly [file: string, text: string])[] {
  return pages.filter(([, text]) => claim.test(text))
}

describe.each(saying(/[Mm]ethods (than|are) [A-Z]{3}/))('%s', (_file, text) => {
  test('names each method of a mapping', () => {
    for (const [, named = ''] of text.matchAll(methodsNamed))
      expect(named.split(/, | and /)).toEqual([...mappingMethods])
  })
})

test.each(saying(/NODE_EXTRA_CA_CERTS/))('%s names the authority of a URL too', (_file, text) => {
  expect(text).toContain('`tls.ca`')
})

const advice = pages.flatMap(([file, text]) => {
  const [, todo = ''] = text.split('## What to do ')
  return file.startsWith('deploy/runbooks/') && /`state: (paused|off)`/.test(todo)
    ? [[file, todo] as const]
    : []
})

test.each(advice)('%s says how a destination of a topic is paused, resumed or changed', (_file, todo) => {
  expect(todo).toMatch(/`sluice destinations (pause|resume|set)/)
})

test('there are such pages', () => {
  expect(advice.length).toBeGreaterThan(3)
  expect(saying(/methods than [A-Z]{3}/).length).toBeGreaterThan(0)
})

test('the page of the console names each of its pages', () => {
  const [, list = ''] =
    /pageNames = \[([^\]]*)\]/.exec(readFileSync(join(root, 'src/console/data/route.ts'), 'utf8')) ?? []
  const names = [...list.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name)
  expect(names).toContain('destinations')
  const [, text = ''] = pages.find(([file]) => file === 'docs/console.md') ?? []
  expect(names.filter((name) => !new RegExp(`\`console/${name}[?\`]`).test(text))).toEqual([])
})
