import type { Config } from '../../config/schema.ts'
import type { Logger } from 'pino'
import { parseJson } from '../../message/json/json.ts'
import { readChange } from '../../audience-files/checked-change.ts'
import { eachLine } from '../../audience-files/file-lines.ts'
import { Spool } from '../../audience-files/spool.ts'
import { counted, Progress, type Screen } from '../../roles/start/progress.ts'
import { topicNames } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { refuseUnknownSource } from '../command/known-source.ts'
import { writeError } from '../command/tools.ts'
import { openInput, readingInput, readingLines } from '../command/upstream-input.ts'
import { openWriter } from '../../roles/operations/record-writer.ts'

/**
 * The flags that describe a change of an audience or a computed trait. A flag that was not given is
 * `undefined`.
 */
export type ChangeFlags = {
  audience: string | undefined
  trait: string | undefined
  name: string | undefined
  key: string | undefined
  user: string | undefined
  member: string | undefined
  /** The new value, as JSON. */
  value: string | undefined
  changedAt: string | undefined
}

const changesAtOnce = 500
const linesNobodyWaitsFor = 1_000

/**
 * Writes changes of audiences and computed traits to `audience-changes`, keyed by user. With flags, writes
 * the one change that the flags describe. Without flags, writes the changes that come from standard input,
 * one in each line. Checks all changes before it sends the first change. Returns a summary.
 */
export async function changeAudience(
  config: Config,
  log: Logger,
  { spaceId, isAnySource, flags }: { spaceId: string; isAnySource: boolean; flags: ChangeFlags },
  screen: Screen,
): Promise<string[]> {
  if (spaceId === '') throw new WrongUseError('--space has to be the id of a source of the catalog.')
  const isOne = Object.values(flags).some((flag) => flag !== undefined)
  const limits = config.message
  const spool = await readingInput('standard input', async () => new Spool(1))
  try {
    if (isOne) {
      const nowMs = Date.now()
      const ready = readChange(changeOf(flags, nowMs), { limits, nowMs })
      if (!ready.ok) throw new WrongUseError(`The change ${spelled(ready.problem)}. Nothing was sent.`)
      spool.add(0, ready.value)
    } else {
      // Reads the clock again for each line, because the input may take long. If the time were read only
      // once, a correct change could seem to be too far in the future.
      await collect(spool, screen, (text) => readChange(text, { limits, nowMs: Date.now() }))
    }
    const total = spool.count(0)
    if (total === 0) {
      throw new StartError(
        'There is no change: name one with flags (--help), or write changes to standard input, one a line.',
      )
    }
    const wanted = { sourceId: spaceId, role: 'audience change', isAnySource } as const
    const unchecked = await refuseUnknownSource(config, log, wanted)
    if (unchecked !== undefined) writeError(unchecked)
    await send(config, log, { spool, spaceId, screen })
    return [`sent ${counted(total, 'change')} to ${topicNames(config).audienceChanges}`]
  } finally {
    spool.close()
  }
}

const flagNames: ReadonlyMap<string, string> = new Map([
  ['audienceId', '--audience'],
  ['audienceName', '--name'],
  ['audienceKey', '--key'],
  ['traitId', '--trait'],
  ['traitName', '--name'],
  ['traitKey', '--key'],
  ['userId', '--user'],
  ['changedAt', '--changed-at'],
])

/** Replaces the names of fields in a problem by the names of their flags. */
function spelled(problem: string): string {
  return problem.replace(/\b[a-z]+(?:Id|Name|Key|At)\b/g, (field) => flagNames.get(field) ?? field)
}

/**
 * Builds a change as JSON from flags. The fields of the change are checked later. Throws when the flags don't
 * describe a change.
 */
function changeOf(flags: ChangeFlags, nowMs: number): string {
  const { audience, trait, name, key, user, member, value } = flags
  const changedAt = flags.changedAt ?? new Date(nowMs).toISOString()
  if ((audience === undefined) === (trait === undefined)) {
    throw new WrongUseError(
      'Name either an audience (--audience, --member) or a computed trait (--trait, --value).',
    )
  }
  if (user === undefined) throw new WrongUseError('Give the id of the user: --user')
  if (name === undefined) throw new WrongUseError('Give the name of the audience or the trait: --name')
  if (audience !== undefined) {
    if (value !== undefined || (member !== 'true' && member !== 'false')) {
      throw new WrongUseError('Give --member true when the user is in the audience now, else --member false')
    }
    return JSON.stringify({
      type: 'membership',
      audienceId: audience,
      audienceName: name,
      ...(key !== undefined && { audienceKey: key }),
      userId: user,
      member: member === 'true',
      changedAt,
    })
  }
  if (value === undefined || !parseJson(value).ok || member !== undefined) {
    throw new WrongUseError(
      `Give the new value as JSON, text in quotation marks: --value 42, or --value '"gold"'`,
    )
  }
  const head = {
    type: 'trait',
    traitId: trait,
    traitName: name,
    ...(key !== undefined && { traitKey: key }),
    userId: user,
    changedAt,
  }
  // Keeps the text of the value as it was written. So the later check of the change finds a number that is
  // too large.
  return `${JSON.stringify(head).slice(0, -1)},"value":${value}}`
}

async function collect(
  spool: Spool,
  screen: Screen,
  check: (text: string) => ReturnType<typeof readChange>,
): Promise<void> {
  const input = await openInput('-')
  const progress = new Progress(screen, 'reading', undefined)
  const detail = () => counted(spool.count(0), 'change')
  await readingLines(input, progress, () =>
    eachLine(input.chunks, (text) => {
      const ready = check(text)
      if (!ready.ok) return ready.problem
      spool.add(0, ready.value)
      if (spool.count(0) % linesNobodyWaitsFor === 0) progress.at(0, detail)
      return undefined
    }),
  )
  progress.end(0, detail())
}

async function send(
  config: Config,
  log: Logger,
  { spool, spaceId, screen }: { spool: Spool; spaceId: string; screen: Screen },
): Promise<void> {
  const total = spool.count(0)
  const progress = new Progress(screen, 'sending', total)
  const writer = await openWriter(config, log, 'audience change', (line) => progress.note(line))
  const topic = topicNames(config).audienceChanges
  let sent = 0
  const detail = () => counted(sent, 'change')
  const advice = () =>
    `At least ${counted(sent, 'change')} of ${total} were written. Run the command again: a change that comes twice does no harm.`
  try {
    for (const texts of spool.read(0)) {
      for (let from = 0; from < texts.length; from += changesAtOnce) {
        const batch = texts.slice(from, from + changesAtOnce)
        const records = batch.map((value) => ({
          topic,
          key: Buffer.from(userOf(value)),
          value: Buffer.from(value),
          headers: { 'source-id': spaceId },
        }))
        await writer.write(records, advice)
        sent += batch.length
        progress.at(sent, detail)
      }
    }
    progress.end(sent, detail())
  } catch (error) {
    progress.abandon()
    throw error
  } finally {
    await writer.stop()
  }
}

function userOf(value: string): string {
  const parsed = parseJson(value)
  const change = parsed.ok ? parsed.value : undefined
  if (typeof change === 'object' && change !== null && 'userId' in change) return String(change.userId)
  throw new Error('a change that was spooled names no user')
}
