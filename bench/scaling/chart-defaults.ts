import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import type { Behavior } from './autoscaler.ts'

type Values = {
  topics: { partitions: number }
  worker: {
    resources: { limits: { cpu: string } }
    autoscaling: {
      minReplicas: number
      targetUtilization: number
      drainSeconds: number
      scaleUp: { stabilizationWindowSeconds: number; percentPerMinute: number }
      scaleDown: { stabilizationWindowSeconds: number; secondsPerPod: number }
    }
  }
}

/** The defaults of the Helm chart for scaling. */
export type ChartDefaults = {
  partitions: number
  processesPerPod: number
  leastPods: number
  /** The target utilization, as a share of the cores of a pod's processes. */
  utilization: number
  drainS: number
  behavior: Behavior
}

const file = resolve(import.meta.dirname, '../../deploy/helm/sluice/values.yaml')

/**
 * Reads the chart's values.yaml. The two pods a minute are the same as in the template
 * `sluice.scalingBehavior`.
 */
export function chartDefaults(): ChartDefaults {
  const { topics, worker }: Values = parse(readFileSync(file, 'utf8'))
  const { minReplicas, targetUtilization, drainSeconds, scaleUp, scaleDown } = worker.autoscaling
  return {
    partitions: topics.partitions,
    processesPerPod: Number(worker.resources.limits.cpu),
    leastPods: minReplicas,
    utilization: targetUtilization / 100,
    drainS: drainSeconds,
    behavior: {
      scaleUp: {
        stabilizationWindowSeconds: scaleUp.stabilizationWindowSeconds,
        policies: [
          { type: 'Percent', value: scaleUp.percentPerMinute, periodSeconds: 60 },
          { type: 'Pods', value: 2, periodSeconds: 60 },
        ],
      },
      scaleDown: {
        stabilizationWindowSeconds: scaleDown.stabilizationWindowSeconds,
        policies: [{ type: 'Pods', value: 1, periodSeconds: scaleDown.secondsPerPod }],
      },
    },
  }
}
