import { globSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { chart, only, podsOf, render, type Resource, valueOf } from './render.ts'
import { installTools, type Tools } from './tools.ts'

const valueSets = globSync('ci/*-values.yaml', { cwd: chart }).map((file) => join(chart, file))

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

const rendered = (...args: readonly string[]) => render(tools, ...args)

function kindsOf(resources: readonly Resource[]): string[] {
  return resources.map(({ kind }) => kind)
}

describe('a growth', () => {
  const grown = ['--set', 'topics.partitions=48,topics.generation=2']

  test.each(valueSets)(
    'gives every pod that talks to Kafka the layout that it has named: %s',
    async (set) => {
      const pods = podsOf(await rendered('-f', set, ...grown))
      const layouts = pods.map((pod) => [
        valueOf(pod, 'SLUICE_TOPICS_PARTITIONS'),
        valueOf(pod, 'SLUICE_TOPICS_GENERATION'),
      ])
      expect(layouts.length).toBeGreaterThan(0)
      expect(layouts).toEqual(pods.map(() => ['48', '2']))
    },
  )

  test('lets as many more processes work as there are partitions', async () => {
    const scaled = ['--set', 'worker.autoscaling.enabled=true,worker.processes=4']
    expect(only(await rendered(...scaled, ...grown), 'ScaledObject').spec).toMatchObject({
      maxReplicaCount: 12,
    })
  })

  test('can be made while there are no workers, and all else stays', async () => {
    const none = await rendered('--set', 'worker.replicas=0')
    expect(only(none, 'StatefulSet').spec).toMatchObject({ replicas: 0 })
    expect(kindsOf(none)).toEqual(kindsOf(await rendered()))
  })
})
