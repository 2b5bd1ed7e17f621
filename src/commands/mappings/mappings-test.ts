import { text } from 'node:stream/consumers'
import type { Logger } from 'pino'
import type { Destination } from '../../catalog/catalog.ts'
import { formatFault } from '../../catalog/fault.ts'
import { readUncheckedCatalog } from '../../catalog/parse.ts'
import { isRecord } from '../../catalog/plain-data.ts'
import type { Config } from '../../config/schema.ts'
import { joinedPath } from '../../delivery/own-request.ts'
import { plain } from '../../delivery-log/lines.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'
import {
  checkRule,
  previewOf,
  type Previewed,
  type PreviewedMapping,
  type PreviewedRequest,
  type Rule,
  type Tried,
} from '../../roles/preview/preview.ts'
import { counted, someOf } from '../../roles/start/progress.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { readMessages } from '../command/message-input.ts'
import { openInput } from '../command/upstream-input.ts'
import { createAdminClient } from '../listen/admin-client.ts'

export type MappingsOrder = {
  /** The file with messages; `-` for standard input. */
  readonly messages: string | undefined
  /** The id of the destination whose rules are tried. */
  readonly destination: string | undefined
  /** The file with mappings; `-` for standard input. */
  readonly mappings: string | undefined
  /** The id of the source whose last events are tried, in place of `messages`. */
  readonly source: string | undefined
  readonly limit: number | undefined
  readonly asJson: boolean
}

/** The rules that are tried. `destination`: that of the catalog, if they are those of one. */
type TriedRules = { readonly rules: Destination; readonly destination: Destination | undefined }

/**
 * Shows what mappings make of messages, in lines. `hasFailed`: true if one of the messages would become a
 * dead letter.
 */
export async function testMappings(
  config: Config,
  log: Logger,
  order: MappingsOrder,
): Promise<{ readonly lines: readonly string[]; readonly hasFailed: boolean }> {
  refuseWrongUse(order)
  const { rules, destination } = await rulesOf(config, log, order)
  const results = previewOf(rules, await triedOf(config, order), config.message)
  const lines = order.asJson
    ? results.map((result) => JSON.stringify(dataOf(result, destination)))
    : [...results.flatMap((result, index) => linesOf(result, index, destination)), summaryOf(results)]
  return { lines, hasFailed: results.some(({ result }) => failures.has(result)) }
}

const failures: ReadonlySet<Previewed['result']> = new Set(['failed', 'mapping_failed', 'refused'])

function refuseWrongUse({ messages, destination, mappings, source, limit }: MappingsOrder): void {
  if ((destination === undefined) === (mappings === undefined))
    throw new WrongUseError(
      'Say which mappings: --destination ID takes those of a destination of the catalog, --mappings FILE those of a file.',
    )
  if ((messages === undefined) === (source === undefined))
    throw new WrongUseError(
      'Say which messages: name a file (- reads standard input), or --source ID for the last events of a source.',
    )
  if (messages === '-' && mappings === '-')
    throw new WrongUseError(
      'Standard input has either the messages or the mappings: name a file for the other.',
    )
  if (limit !== undefined && (source === undefined || limit > mostEvents))
    throw new WrongUseError(`--limit: it goes with --source, and is at most ${mostEvents}.`)
}

/** Limit on the events of one answer of the admin API. */
const mostEvents = 100

async function rulesOf(
  config: Config,
  log: Logger,
  { destination: id, mappings: file = '' }: MappingsOrder,
): Promise<TriedRules> {
  if (id === undefined) {
    const checked = checkRule(await readRule(file))
    if (!checked.ok) throw new WrongUseError(checked.faults.join('\n'))
    return { rules: checked.destination, destination: undefined }
  }
  const { destinations } = await readCatalog(config, log, 'destinations')
  const destination = destinations.get(id)
  if (destination !== undefined) return { rules: destination, destination }
  const what = `The catalog has no destination ${JSON.stringify(id)}`
  throw new WrongUseError(`${what}: it has ${someOf([...destinations.keys()])}.`)
}

/** Reads a list of mappings, one mapping, or an object that has mappings, and perhaps a filter. */
async function readRule(file: string): Promise<Rule> {
  const { name, chunks } = await openInput(file)
  const read = readUncheckedCatalog(await text(chunks), name)
  if (!read.ok) throw new WrongUseError(read.faults.map(formatFault).join('\n'))
  const { value } = read
  if (Array.isArray(value)) return { mappings: value }
  if (!isRecord(value) || value['mappings'] === undefined) return { mappings: [value] }
  const { mappings, filter } = value
  return { mappings, ...(filter !== undefined && { filter }) }
}

async function triedOf(
  config: Config,
  { messages = '', source, limit }: MappingsOrder,
): Promise<readonly Tried[]> {
  if (source !== undefined) return lastEvents(config, source, limit)
  const atMs = Date.now()
  return (await readMessages(messages)).map((message) => ({ value: Buffer.from(message), atMs }))
}

type LastEvent = { readonly at: string | null; readonly body: string | null }

/** Returns the last events of a source, the oldest first, as the admin API has them. */
async function lastEvents(config: Config, source: string, limit = 20): Promise<readonly Tried[]> {
  const path = `/v1/sources/${encodeURIComponent(source)}/events?limit=${limit}`
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer of our own API
  const { events } = (await createAdminClient(config).ask('GET', path)) as { events: readonly LastEvent[] }
  if (events.length === 0)
    throw new StartError(`The source ${source} has no recent events: name a file with messages.`)
  return events.toReversed().map(({ at, body }) => ({
    value: body === null ? null : Buffer.from(body),
    atMs: at === null ? 0 : Date.parse(at),
  }))
}

function linesOf(
  { messageId, result, detail, mapping, request }: Previewed,
  index: number,
  destination: Destination | undefined,
): readonly string[] {
  const name = plain(messageId ?? `message ${index + 1}`)
  if (request === null) return [`${name}: ${whyNot(result, mapping)}${detail === null ? '' : `: ${detail}`}`]
  const { headers, body } = request
  return [
    `${name}: ${mapping === null ? 'as it is, without a mapping' : nameOf(mapping)}${inBatch(request, destination)}`,
    ...urlsOf(request, destination).map((url) => plain(`  ${request.method} ${url}`)),
    ...headers.map((header) => plain(`  ${header.name}: ${header.value}`)),
    plain(`  ${body}`),
  ]
}

function whyNot(result: Previewed['result'], mapping: PreviewedMapping | null): string {
  switch (result) {
    case 'failed':
      return mapping === null
        ? 'becomes a dead letter (filter_failed), because the condition of the filter can not be evaluated'
        : `becomes a dead letter (filter_failed), because the condition of ${nameOf(mapping)} can not be evaluated`
    case 'mapping_failed':
      return `becomes a dead letter (mapping_failed), because ${mapping === null ? 'the mapping' : nameOf(mapping)} makes no request of it`
    case 'refused':
      return 'goes to no destination, because it has a fault'
    case 'missing_field':
      return 'no request, because it lacks a field of the condition of the filter, or one has another type'
    case 'not_sampled':
      return 'no request, because its user is not in the sample'
    case 'excluded':
    case 'passes':
      return 'no request'
  }
}

/** People count from 1. */
function nameOf({ place, name }: PreviewedMapping): string {
  return `mapping ${place + 1}${name === null ? '' : ` (${plain(name)})`}`
}

function inBatch({ isAlone }: PreviewedRequest, destination: Destination | undefined): string {
  if (destination?.batch === undefined) return ''
  return isAlone ? ', alone and not in a batch' : ', as a part of a batch'
}

/** Returns the URLs of a request, one for each hook. The path of a hook may be a secret. */
function urlsOf({ path }: PreviewedRequest, destination: Destination | undefined): readonly string[] {
  if (destination === undefined) return [`{URL}${path}`]
  return destination.hooks.map((hook) => hook.origin + joinedPath(hook.path === '/' ? '/' : hiddenPath, path))
}

const hiddenPath = '/…'

function dataOf(result: Previewed, destination: Destination | undefined): object {
  const { request } = result
  if (request === null || destination === undefined) return result
  return { ...result, urls: urlsOf(request, destination) }
}

function summaryOf(results: readonly Previewed[]): string {
  const made = results.filter(({ request }) => request !== null).length
  return `${made} of ${counted(results.length, 'message')} ${made === 1 ? 'gets' : 'get'} a request.`
}
