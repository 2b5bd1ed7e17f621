import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import {
  openPartwiseCluster,
  type PartwiseCluster,
  type ConfigReader,
} from '../kafka/cluster/partwise-cluster.ts'
import { readSettings, satisfies, type TopicSetting } from './topic-settings.ts'

/** A change of one topic, as every broker has to report it. */
export type TopicChange = {
  readonly topic: string
  readonly isDeleted?: true
  /** The partitions that are new: from `first` to `count` - 1. Each needs a leader. */
  readonly newPartitions?: { readonly first: number; readonly count: number }
  readonly settings?: readonly TopicSetting[]
}

/**
 * The answer of a broker:
 *
 * - `all`: the broker reports all changes.
 * - `old settings`: the broker reports all changes except changes of settings.
 * - `none`: the broker didn't answer.
 * - `lacks` names a change that the broker doesn't report.
 */
type Answer = 'all' | 'old settings' | 'none' | { readonly lacks: string }

const partitionsWithinMs = 30_000
/**
 * Brokers that don't answer within this time, in milliseconds, are ignored. A dead broker is removed from the
 * brokers' list after 9 s.
 */
const answeredWithinMs = 10_000
/** The longest wait for settings. Some clusters (Azure Event Hubs) accept a setting and never report it. */
const settingsWithinMs = 5_000
const requestTimeoutMs = 5_000
const pauseMs = 100

/**
 * Waits until every broker reports these changes. This is needed because the controller answers before every
 * broker knows of the change. Without the wait, a process that starts now could still see the topics as they
 * were before. Rejects if a broker doesn't report new partitions or a deletion within 30 s. Waits at most 5 s
 * for settings.
 */
export async function untilEveryBrokerReports(kafka: Kafka, changes: readonly TopicChange[]): Promise<void> {
  if (changes.length === 0) return
  const opened = openPartwiseCluster(kafka)
  try {
    await opened.cluster.connect()
    await opened.cluster.addMultipleTargetTopics(changes.map(({ topic }) => topic))
    await poll(opened, changes)
  } finally {
    await opened.close()
  }
}

async function poll(opened: PartwiseCluster, changes: readonly TopicChange[]): Promise<void> {
  const startedMs = performance.now()
  const upToDate = new Set<number>()
  for (;;) {
    const brokers = opened.metadata?.brokers.map(({ nodeId }) => nodeId) ?? []
    const asked = brokers.filter((nodeId) => !upToDate.has(nodeId))
    const answers = await Promise.all(asked.map((nodeId) => answerOf(opened, nodeId, changes)))
    const passedMs = performance.now() - startedMs
    let lacking = ''
    let isWaiting = false
    for (const [index, nodeId] of asked.entries()) {
      const answer = answers[index] ?? 'none'
      if (answer === 'all') upToDate.add(nodeId)
      else if (typeof answer === 'object') lacking = `broker ${nodeId} does not report ${answer.lacks}`
      else if (passedMs < (answer === 'none' ? answeredWithinMs : settingsWithinMs)) isWaiting = true
    }
    if (lacking === '' && !isWaiting) return
    if (lacking !== '' && passedMs > partitionsWithinMs)
      throw new Error(`the topics were changed, but ${partitionsWithinMs / 1_000} s later ${lacking}`)
    await delay(pauseMs)
    await opened.cluster.refreshMetadata()
  }
}

async function answerOf(
  opened: PartwiseCluster,
  nodeId: number,
  changes: readonly TopicChange[],
): Promise<Answer> {
  try {
    const names = changes.map(({ topic }) => topic)
    const topics = await opened.topicsKnownTo(nodeId, names, requestTimeoutMs)
    for (const change of changes) {
      const withLeader = topics.get(change.topic)
      if (change.isDeleted && withLeader !== undefined) return { lacks: `that ${change.topic} was deleted` }
      if (!hasPartitions(change, withLeader)) return { lacks: `all new partitions of ${change.topic}` }
    }
    const broker = await opened.findBroker(nodeId)
    for (const change of changes) if (!(await hasSettings(change, broker))) return 'old settings'
    return 'all'
  } catch {
    return 'none'
  }
}

function hasPartitions({ newPartitions }: TopicChange, withLeader: ReadonlySet<number> | undefined): boolean {
  if (newPartitions === undefined) return true
  const { first, count } = newPartitions
  for (let partition = first; partition < count; partition++) if (!withLeader?.has(partition)) return false
  return true
}

async function hasSettings({ topic, settings = [] }: TopicChange, broker: ConfigReader): Promise<boolean> {
  if (settings.length === 0) return true
  const reported = await readSettings(broker, topic)
  // A broker that can't report settings counts as up to date.
  if (typeof reported === 'string') return true
  return settings.every((setting) => satisfies(setting, reported.get(setting.name)?.value))
}
