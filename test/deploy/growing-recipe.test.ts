import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { chart, ofName, only, type Pod, podOf, type Resource } from './render.ts'
import { installTools, kubernetesVersions, runTool, type Tools } from './tools.ts'

const root = resolve(import.meta.dirname, '../..')
/**
 * The two recipes of docs/growing.md for Kubernetes: for an installation with a gateway, and for one without.
 */
const [withGateway = '', asJob = ''] = blocksAfter(
  readFileSync(resolve(root, 'docs/growing.md'), 'utf8'),
  '## On Kubernetes',
)
const minimal = join(chart, 'ci/minimal-values.yaml')

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

function blocksAfter(page: string, heading: string): string[] {
  return [...page.slice(page.indexOf(heading)).matchAll(/^```\n([^]*?)^```$/gm)].map(
    ([, block = '']) => block,
  )
}

/**
 * Runs lines of a shell in which the commands `helm` and `kubectl` are replaced by those of the test. Returns
 * the standard output. Throws if a line fails.
 */
async function runLines(lines: string, commands: Readonly<Record<string, string>>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-recipe-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, command] of Object.entries(commands))
    writeFileSync(join(folder, name), `#!/bin/sh\n${command}\n`, { mode: 0o755 })
  const env = { PATH: `${folder}:${process.env['PATH']}` }
  const { isOk, output, text } = await runTool('sh', ['-euc', `cd '${folder}'\n${lines}`], { env })
  if (!isOk) throw new Error(text)
  return output
}

function settingsOf(pod: Pod): Map<string, string | undefined> {
  const [{ env }] = pod.containers
  return new Map(
    env.filter(({ name }) => /^SLUICE_(KAFKA|TOPICS)_/.test(name)).map(({ name, value }) => [name, value]),
  )
}

/**
 * The version of Kubernetes to render for. Without a cluster and without this option, `helm` would assume a
 * very old version.
 */
const kubeVersion = `--kube-version ${kubernetesVersions.at(-1)}`

describe('to grow on Kubernetes', () => {
  test('all that the recipe names is in a release of that name', async () => {
    const args = ['-f', minimal, '--set', 'worker.autoscaling.enabled=true', ...kubeVersion.split(' ')]
    const { output } = await runTool(tools.helm, ['template', 'sluice', chart, ...args])
    const resources = parseAllDocuments(output).flatMap((document): Resource[] => document.toJS() ?? [])
    const kinds: Record<string, string> = {
      deployment: 'Deployment',
      statefulset: 'StatefulSet',
      scaledobject: 'ScaledObject',
    }
    const named = [...withGateway.matchAll(/\b(deployment|statefulset|scaledobject)[/ ](\S+)/g)]
    expect(new Set(named.map(([, kind]) => kind))).toEqual(new Set(Object.keys(kinds)))
    const there = new Set(resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`))
    for (const [, kind = '', name] of named) expect(there).toContain(`${kinds[kind]} ${name}`)
    // A gateway has all settings of a worker for Kafka and topics, except those for the worker's place in its
    // group.
    const worker = settingsOf(podOf(ofName(resources, 'StatefulSet', '-worker')))
    for (const name of ['SLUICE_KAFKA_INSTANCE_ID', 'SLUICE_KAFKA_LEAVE_ON_STOP']) worker.delete(name)
    expect(settingsOf(podOf(ofName(resources, 'Deployment', '-gateway')))).toEqual(worker)
  })

  test('the Job of the recipe is that of the topics with another command, and no deadline', async () => {
    const output = await runLines(asJob.replaceAll('CHART', chart), {
      helm: `if [ "$1" = get ]; then cat '${minimal}'; else exec '${tools.helm}' "$@" ${kubeVersion}; fi`,
      kubectl: 'if [ "$1" = create ]; then cat; fi',
    })
    const made = parseAllDocuments(output).flatMap((document): Resource[] => document.toJS() ?? [])
    const job = only(made, 'Job')
    expect(job.metadata.name).toBe('sluice-grow')
    expect(job.spec).not.toHaveProperty('activeDeadlineSeconds')
    const [container] = podOf(job).containers
    expect(container.args).toEqual(['topics', 'grow', '48'])
    expect(settingsOf(podOf(job)).get('SLUICE_KAFKA_BROKERS')).toBe('kafka-0.kafka:9092')
  })
})
