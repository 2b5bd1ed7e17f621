import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GoProgram, goModule, goProgram } from './go-program.ts'

/**
 * The programs of a Kubernetes cluster. Go builds each of them once. They are kept in the same folder as
 * Kafka's jars.
 */
export type KubernetesPrograms = {
  etcd: string
  apiServer: string
  controllerManager: string
  scheduler: string
  kubectl: string
  kwok: string
  /**
   * The configuration with which kwok simulates a kubelet. Nodes and pods become ready at once, and pods of
   * Jobs succeed at once.
   */
  kwokStages: string
}

/**
 * One of the versions of Kubernetes that the chart is checked against. Its libraries are published under the
 * same number with a 0 in place of the 1 (`v0.37.2`).
 */
const version = 'v1.37.2'
const kwokVersion = 'v0.8.0'
const stages = ['node/fast', 'node/heartbeat-with-lease', 'pod/fast']

/**
 * Returns the programs, and builds those that don't exist yet. The first call takes half an hour on two
 * cores.
 */
export async function kubernetesPrograms(): Promise<KubernetesPrograms> {
  const etcd = await goProgram({
    name: 'etcd',
    package: 'go.etcd.io/etcd/server/v3',
    module: 'go.etcd.io/etcd/server/v3',
    version: 'v3.7.3',
  })
  const kwok = await goProgram({
    name: 'kwok',
    package: 'sigs.k8s.io/kwok/cmd/kwok',
    module: 'sigs.k8s.io/kwok',
    version: kwokVersion,
  })
  const sources = await goModule('sigs.k8s.io/kwok', kwokVersion)
  const files = stages.flatMap((stage) =>
    globSync('*.yaml', { cwd: join(sources, 'kustomize/stage', stage) })
      .filter((file) => file !== 'kustomization.yaml')
      .map((file) => join(sources, 'kustomize/stage', stage, file)),
  )
  return {
    etcd,
    kwok,
    kwokStages: files.map((file) => readFileSync(file, 'utf8')).join('\n---\n'),
    apiServer: await goProgram(ofKubernetes('kube-apiserver')),
    controllerManager: await goProgram(ofKubernetes('kube-controller-manager')),
    scheduler: await goProgram(ofKubernetes('kube-scheduler')),
    kubectl: await kubectl(),
  }
}

/** Returns the program with which people ask a cluster, alone. */
export function kubectl(): Promise<string> {
  return goProgram(ofKubernetes('kubectl'))
}

function ofKubernetes(name: string): GoProgram {
  const [, minor = ''] = version.split('.')
  const said = { gitVersion: version, gitMajor: '1', gitMinor: minor }
  return {
    name,
    package: `k8s.io/kubernetes/cmd/${name}`,
    module: 'k8s.io/kubernetes',
    version,
    replacedBy: version.replace('v1.', 'v0.'),
    linkerFlags: Object.entries(said)
      .map(([variable, value]) => `-X k8s.io/component-base/version.${variable}=${value}`)
      .join(' '),
  }
}
