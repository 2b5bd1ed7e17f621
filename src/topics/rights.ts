import { type KafkaRole, kafkaRoles } from './kafka-roles.ts'
import { accessOf } from './topic-list.ts'
import { shortTopicName, type TopicLayout, topicNames, topicTable } from './topics.ts'

/** The operations, as Kafka's authorizers name them. */
export type Operation =
  | 'READ'
  | 'WRITE'
  | 'CREATE'
  | 'DELETE'
  | 'ALTER'
  | 'DESCRIBE'
  | 'DESCRIBE_CONFIGS'
  | 'ALTER_CONFIGS'

export type Right = {
  readonly resource: 'Topic' | 'Group' | 'TransactionalId'
  readonly name: string
  readonly operation: Operation
  /** True if the role works without this right, and lacks only one feature. */
  readonly isOptional?: true
}

/**
 * The rights that a role needs in addition to reading and writing topics. The table of topics lists which
 * topics a role reads and writes.
 */
type Needs = {
  /**
   * Says whether the role reads the settings of the catalog's topic, of all topics that it uses, or of all.
   */
  readonly settings?: 'catalog' | 'used' | 'all'
  readonly isMember?: true
  readonly creates?: true
}

/**
 * The roles of `sluice topics grow`, which gives an installation more partitions. Their rights come from
 * functions of their own, such as `rightsToGrow`.
 */
type Growing = Extract<KafkaRole, `topics grow${string}`>

const needsOf: Readonly<Record<Exclude<KafkaRole, Growing>, Needs>> = {
  worker: { settings: 'all', isMember: true },
  gateway: { settings: 'used' },
  up: { settings: 'all', isMember: true, creates: true },
  'topics apply': { settings: 'all', creates: true },
  'topics check': { settings: 'all' },
  send: {},
  'audience sync': {},
  'audience sync --allow-leaving': {},
  'audience change': {},
  'log serve': {},
  'log tail': {},
  'log find': {},
  'audience backfill': {},
  replay: {},
  destinations: { settings: 'catalog' },
  status: {},
  catalog: { settings: 'catalog' },
  admin: { settings: 'catalog' },
}

export type RightsScope = {
  readonly layout: TopicLayout
  readonly groupId: string
  /** True if the settings of topics are read. False if `topics.check` is off. */
  readonly withSettings: boolean
}

/**
 * Returns all operations that a role may need, according to the table of topics. The role needs all of them,
 * except for the optional rights. READ and WRITE of a topic, and READ of a group, include DESCRIBE.
 * ALTER_CONFIGS includes DESCRIBE_CONFIGS.
 */
export function rightsOf(role: KafkaRole, scope: RightsScope): Right[] {
  if (role === 'topics grow') return rightsToGrow(scope)
  if (role === 'topics grow --abandon') return rightsToAbandon(scope)
  if (role === 'topics grow --clean') return rightsToClean(scope)
  const { layout, groupId, withSettings } = scope
  const { settings, isMember = false, creates = false } = needsOf[role]
  const rights = topicTable(layout).flatMap(({ topic, key, isOptional }): Right[] => {
    const access = accessOf(role, key)
    const operations: Operation[] = [...access]
    if (access.length === 0 && settings === 'all') operations.push('DESCRIBE')
    if (creates) operations.push('CREATE')
    // ALTER_CONFIGS includes reading the settings.
    const isRead = settings === 'catalog' ? key === 'catalog' : access.length > 0
    if (withSettings && (settings === 'all' || (settings !== undefined && isRead)))
      operations.push(creates ? 'ALTER_CONFIGS' : 'DESCRIBE_CONFIGS')
    const startsWithout = role === 'worker' || role === 'admin'
    const optional = isOptional && !creates && startsWithout ? ({ isOptional } as const) : undefined
    return operations.map((operation) => ({ resource: 'Topic', name: topic, operation, ...optional }))
  })
  const pen = transactionalIdOf(role, layout)
  return [
    ...rights,
    ...(pen === undefined ? [] : [{ resource: 'TransactionalId', name: pen, operation: 'WRITE' } as const]),
    ...(isMember ? [{ resource: 'Group', name: groupId, operation: 'READ' } as const] : []),
  ]
}

/** Returns the transactional id with which a role writes the catalog. `undefined` if it doesn't write it. */
function transactionalIdOf(role: KafkaRole, layout: TopicLayout): string | undefined {
  const writes = layout.hasCatalog === true && accessOf(role, 'catalog').includes('WRITE')
  return writes ? topicNames(layout).catalog : undefined
}

/**
 * Returns the rights for a growth, which gives an installation more partitions (`sluice topics grow`). A
 * growth reads the topics that it copies. It creates the new topics and writes to them. It adds partitions to
 * the topics that upstream services write.
 */
function rightsToGrow({ layout, groupId }: RightsScope): Right[] {
  const { present, next } = ownTopics(layout)
  const ofTopics: [string, Operation[]][] = [
    ...topicTable(layout)
      .map(({ topic }) => topic)
      .filter((topic) => !present.includes(topic))
      .map((topic): [string, Operation[]] => [topic, sharedRights(shortTopicName(topic, layout.prefix))]),
    ...present.map((topic): [string, Operation[]] => [topic, ['READ']]),
    ...next.map((topic): [string, Operation[]] => [topic, ['READ', 'WRITE', 'CREATE', 'ALTER_CONFIGS']]),
  ]
  return [
    ...ofTopics.flatMap(([name, operations]) =>
      operations.map((operation): Right => ({ resource: 'Topic', name, operation })),
    ),
    { resource: 'Group', name: groupId, operation: 'READ' },
  ]
}

const ofOnePartition: ReadonlySet<string> = new Set([
  'replay-jobs',
  'notices',
  'lending',
  'health',
  'catalog',
  'catalog-history',
])

/** Returns the operations that `sluice topics grow` needs on a topic that keeps its name. */
function sharedRights(name: string): Operation[] {
  if (name === 'backfills') return ['READ', 'WRITE']
  // These topics always have one partition, so a growth only checks that they exist.
  if (ofOnePartition.has(name)) return ['DESCRIBE']
  return name === 'audience-changes' ? ['READ', 'ALTER'] : ['ALTER']
}

function rightsToAbandon({ layout }: RightsScope): Right[] {
  const ofTopics = ownTopics(layout).next.map((name): Right => toDelete(name))
  const marks = `${layout.prefix}backfills`
  return [
    ...ofTopics,
    ...(['READ', 'WRITE'] as const).map((operation): Right => ({
      resource: 'Topic',
      name: marks,
      operation,
    })),
  ]
}

/**
 * Returns the rights for removing the topics that the installation had before `sluice topics grow` ran.
 * `layout` is the layout after that command.
 */
function rightsToClean({ layout }: RightsScope): Right[] {
  const { prefix, generation } = layout
  const before = Array.from({ length: generation - 1 }, (_, index) => index + 1)
  return [
    ...before.flatMap((one) => ownTopics({ ...layout, generation: one }).present).map(toDelete),
    { resource: 'Topic', name: `${prefix}backfills`, operation: 'READ' },
  ]
}

function toDelete(name: string): Right {
  return { resource: 'Topic', name, operation: 'DELETE' }
}

/**
 * Returns the names of the topics that `sluice topics grow` copies: their present names, and the names of
 * their copies.
 */
function ownTopics(layout: TopicLayout): { present: string[]; next: string[] } {
  const namesOf = (generation: number): string[] =>
    topicTable({ ...layout, generation }).map(({ topic }) => topic)
  const shared = namesOf(layout.generation + 1)
  const present = namesOf(layout.generation)
  return {
    present: present.filter((topic) => !shared.includes(topic)),
    next: shared.filter((topic) => !present.includes(topic)),
  }
}

/** Returns the rights of all roles as a page of documentation, for the topics of `scope`. */
export function rightsMarkdown(scope: RightsScope): string {
  return kafkaRoles
    .map((role) => `\n## ${headings[role]}\n\n${tableOf(rightsOf(role, scopeOf(role, scope)))}\n`)
    .join('')
}

/**
 * Returns the scope with which a role runs. `sluice topics grow --clean` runs with the settings that apply
 * after the growth.
 */
function scopeOf(role: KafkaRole, scope: RightsScope): RightsScope {
  if (role !== 'topics grow --clean') return scope
  return { ...scope, layout: { ...scope.layout, generation: scope.layout.generation + 1 } }
}

const headings: Readonly<Record<KafkaRole, string>> = {
  worker: '`sluice worker`',
  gateway: '`sluice gateway`',
  up: '`sluice up`',
  'topics apply': '`sluice topics apply`',
  'topics check': '`sluice topics check`',
  'topics grow': '`sluice topics grow`',
  'topics grow --abandon': '`sluice topics grow --abandon`',
  'topics grow --clean': '`sluice topics grow --clean`',
  send: '`sluice send`',
  'audience sync': '`sluice audience sync`',
  'audience sync --allow-leaving': '`sluice audience sync --allow-leaving`',
  'audience change': '`sluice audience change`',
  'audience backfill': '`sluice audience backfill`',
  'log serve': '`sluice log serve`',
  'log tail': '`sluice log tail`',
  'log find': '`sluice log scan`, and `sluice log find`, for payloads',
  replay: '`sluice replay`',
  destinations: '`sluice destinations` and `sluice mappings`',
  status: '`sluice status`',
  catalog: '`sluice catalog`, `sluice apply`, `sluice sources` and `sluice tokens`',
  admin: '`sluice admin`',
}

const heading = ['Resource', 'Name', 'Operations']

function tableOf(rights: readonly Right[]): string {
  const byResource = Map.groupBy(rights, ({ resource, name }) => `${resource} ${name}`)
  const rows = [...byResource.values()].map((ofIt) => [
    ofIt[0]?.resource ?? '',
    `\`${ofIt[0]?.name ?? ''}\``,
    ofIt.map(({ operation }) => operation).join(', '),
  ])
  const widths = heading.map((_, column) =>
    Math.max(...[heading, ...rows].map((row) => row[column]?.length ?? 0)),
  )
  const rule = widths.map((width) => '-'.repeat(width))
  const lines = [heading, rule, ...rows].map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)),
  )
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n')
}
