import { conditionOfFql } from '../../conditions/fql.ts'
import type { Config } from '../../config/schema.ts'
import { checkRule, previewOf, type Previewed, type PreviewResult } from '../../roles/preview/preview.ts'
import { counted } from '../../roles/start/progress.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'
import { readMessages } from '../command/message-input.ts'

/**
 * Returns a line for each message of a file that says whether it meets a condition, and a line with counts.
 */
export async function testFilter(
  config: Config,
  { condition, file, asJson }: { condition: string; file: string; asJson: boolean },
): Promise<string[]> {
  const rule = checkRule({ filter: { condition } })
  if (!rule.ok) throw new WrongUseError(rule.faults.join('\n'))
  const atMs = Date.now()
  const messages = await readMessages(file)
  const tried = messages.map((text) => ({ value: Buffer.from(text), atMs }))
  const results = previewOf(rule.destination, tried, config.message)
  if (asJson)
    return results.map(({ messageId, result, detail }) => JSON.stringify({ messageId, result, detail }))
  return [...results.map(lineOf), summaryOf(results)]
}

/** Returns the condition that says the same as a text in FQL. */
export function fromFql(fql: string): string[] {
  const translated = conditionOfFql(fql)
  if (translated.ok) return [translated.condition]
  throw new WrongUseError(`This can't be translated: ${translated.fault}.`)
}

const words: Readonly<Record<PreviewResult, string>> = {
  passes: 'passes',
  excluded: 'does not pass',
  missing_field: 'does not pass: it lacks a field of the condition, or one has another type',
  not_sampled: 'does not pass: its user is not in the sample',
  failed: 'becomes a dead letter (filter_failed): the condition can not be evaluated',
  mapping_failed: 'becomes a dead letter (mapping_failed): the mapping makes no request of it',
  refused: 'goes to no destination: it has a fault',
}

function lineOf({ messageId, result, detail }: Previewed, index: number): string {
  const why = detail === null ? '' : ` (${detail})`
  return `${messageId ?? `message ${index + 1}`}: ${words[result]}${why}`
}

function summaryOf(results: readonly Previewed[]): string {
  const passing = results.filter(({ result }) => result === 'passes').length
  return `${passing} of ${counted(results.length, 'message')} pass.`
}
