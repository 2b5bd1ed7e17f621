import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import { readManifest } from '../../scripts/project-files.ts'
import { writeCustomSchemas, writeKubernetesSchemas } from './schemas.ts'
import { installTools, kubernetesVersions, type Ran, runTool, type Tools } from './tools.ts'

/**
 * `npm run check:deploy` checks the files below `deploy`, the workflows and docker-compose.yml, each with the
 * tool for its format. It installs these tools once. It skips nothing: a tool that can't be installed is a
 * fault.
 */
const root = resolve(import.meta.dirname, '../..')
const chart = 'deploy/helm/sluice'
const newest = kubernetesVersions.at(-1) ?? ''
const gitopsJob = 'deploy/examples/gitops/apply-job.yaml'

type Check = { name: string; run: () => Promise<Ran> }

process.chdir(root)
const tools = await installTools()
const scratch = mkdtempSync(join(tmpdir(), 'sluice-deploy-'))
try {
  const checks = [...fileChecks(tools), ...chartChecks(tools)]
  let failed = 0
  for (const { name, run } of checks) {
    const { isOk, text } = await run()
    console.log(`${isOk ? 'ok  ' : 'FAIL'} ${name}`)
    if (isOk) continue
    failed++
    console.log(text.trimEnd().replaceAll(/^/gm, '     '))
  }
  console.log(`check:deploy: ${checks.length - failed} of ${checks.length} are as they must be`)
  if (failed > 0) process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

function fileChecks({ hadolint, yamllint, actionlint, compose, promtool }: Tools): Check[] {
  const rules = found('deploy/prometheus/*.rules.yaml')
  const workflows = found('.github/workflows/*.yml')
  const templates = found('.github/ISSUE_TEMPLATE/*.yml')
  const yamls = ['docker-compose.yml', ...workflows, ...templates, ...found('deploy/**/*.{yaml,yml}')].filter(
    (file) => !file.startsWith(`${chart}/templates`),
  )
  return [
    { name: 'the image has the Node of package.json', run: sameNode },
    { name: 'hadolint deploy/Dockerfile', run: () => runTool(hadolint, ['deploy/Dockerfile']) },
    {
      name: `yamllint of ${yamls.length} files`,
      run: () => {
        const packages = resolve(yamllint, '../..')
        const args = ['--strict', '--config-file', 'deploy/.yamllint', ...yamls]
        return runTool('python3', [yamllint, ...args], { env: { PYTHONPATH: packages } })
      },
    },
    { name: 'actionlint', run: () => runTool(actionlint, ['-no-color', ...workflows]) },
    { name: 'compose-go docker-compose.yml', run: () => runTool(compose, ['docker-compose.yml']) },
    { name: 'promtool check rules', run: () => runTool(promtool, ['check', 'rules', ...rules]) },
    {
      name: 'promtool check config of docker-compose.yml',
      // promtool checks only the syntax, because the paths of the rules are paths in the container.
      run: () => runTool(promtool, ['check', 'config', '--syntax-only', 'deploy/compose/prometheus.yml']),
    },
  ]
}

function chartChecks(all: Tools): Check[] {
  const { helm } = all
  const required = `${chart}/ci/minimal-values.yaml`
  const sets = [...found(`${chart}/ci/*-values.yaml`), ...found('deploy/examples/*.yaml')]
  const custom = writeCustomSchemas(all.customResources, scratch)
  const schemas = new Map(
    kubernetesVersions.map((version) => [
      version,
      writeKubernetesSchemas(all.kubernetesSchemas, version, scratch),
    ]),
  )
  return [
    { name: 'the chart has the version of package.json', run: sameVersion },
    ...sets.map((set) => ({
      name: `helm lint -f ${set}`,
      run: () =>
        runTool(helm, ['lint', '--strict', '--kube-version', newest, '-f', required, '-f', set, chart]),
    })),
    ...sets.flatMap((set) =>
      kubernetesVersions.map((version) => ({
        name: `helm template -f ${set} for Kubernetes ${version}`,
        run: () =>
          validated(all, { sets: [required, set], version, folders: [schemas.get(version) ?? '', custom] }),
      })),
    ),
    ...kubernetesVersions.map((version) => ({
      name: `kubeconform ${gitopsJob} for Kubernetes ${version}`,
      run: () =>
        conforming(all.kubeconform, { file: gitopsJob, version, folders: [schemas.get(version) ?? ''] }),
    })),
    { name: 'helm package', run: () => runTool(helm, ['package', chart, '--destination', scratch]) },
  ]
}

/**
 * Renders the chart, and checks each resource against its schema. The schema is that of Kubernetes, or that
 * of a custom resource. A resource without a schema is a fault.
 */
async function validated(
  { helm, kubeconform }: Tools,
  { sets, version, folders }: { sets: readonly string[]; version: string; folders: readonly string[] },
): Promise<Ran> {
  const rendered = await runTool(helm, [
    'template',
    'release',
    chart,
    '--namespace',
    'sluice',
    '--kube-version',
    version,
    ...sets.flatMap((set) => ['-f', set]),
  ])
  if (!rendered.isOk) return rendered
  const file = join(scratch, 'rendered.yaml')
  writeFileSync(file, rendered.text)
  return conforming(kubeconform, { file, version, folders })
}

/** Checks each resource of a file against its schema. */
function conforming(
  kubeconform: string,
  { file, version, folders }: { file: string; version: string; folders: readonly string[] },
): Promise<Ran> {
  const locations = folders.flatMap((folder) => [
    '-schema-location',
    join(folder, '{{.ResourceKind}}{{.KindSuffix}}.json'),
  ])
  return runTool(kubeconform, ['-strict', '-summary', '-kubernetes-version', version, ...locations, file])
}

async function sameVersion(): Promise<Ran> {
  const { version } = readManifest(root)
  const { version: ofChart, appVersion }: { version: string; appVersion: string } = parse(
    readFileSync(join(chart, 'Chart.yaml'), 'utf8'),
  )
  const isOk = ofChart === version && appVersion === version
  return checked(isOk, `package.json has ${version}, Chart.yaml ${ofChart} and appVersion ${appVersion}`)
}

async function sameNode(): Promise<Ran> {
  const { devDependencies = {} } = readManifest(root)
  const ofImage = /^ARG NODE_IMAGE=node:([\d.]+)-/m.exec(readFileSync('deploy/Dockerfile', 'utf8'))?.[1]
  const version = devDependencies['node']
  return checked(ofImage === version, `package.json has Node ${version}, deploy/Dockerfile ${ofImage}`)
}

function checked(isOk: boolean, text: string): Ran {
  return { isOk, text, output: text }
}

/**
 * Returns the files that match `pattern`. Throws if there are none, because a check that saw no file has
 * checked nothing.
 */
function found(pattern: string): string[] {
  const files = globSync(pattern).toSorted()
  if (files.length === 0) throw new Error(`there is no ${pattern}`)
  return files
}
