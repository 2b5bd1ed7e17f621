import { existsSync, readFileSync, statSync } from 'node:fs'
import type { RootCommand } from '@bomb.sh/tab'
import type { Config } from '../config/schema.ts'

/** The arguments and options whose values are ids of the catalog, by name. */
const kinds: Readonly<Record<string, IdKind>> = {
  destination: 'destinations',
  source: 'sources',
  to: 'destinations',
}
type IdKind = 'destinations' | 'sources'

/** Nobody waits longer for a completion, in milliseconds. */
const answerWithinMs = 1_000
const mostListed = 200
const maxFileBytes = 1024 * 1024

/**
 * Lets the completion name ids, if it is asked for one. `words`: the words of the command line without the
 * name of the program, and the last one is completed. The ids are those of the catalog's file, or of the
 * admin API. If neither can be read at once, there are none, and nothing is said: a shell shows no messages.
 */
export async function completeIds(
  root: RootCommand,
  words: readonly string[],
  configOf: () => Config,
): Promise<void> {
  const place = placeOf(root, words)
  if (place === undefined) return
  const ids = await idsOf(place.kind, words.at(-1) ?? '', configOf).catch((): readonly string[] => [])
  place.set((complete) => {
    for (const id of ids) complete(id, '')
  })
}

type Handler = (complete: (value: string, description: string) => void) => void
type Place = { readonly kind: IdKind; readonly set: (handler: Handler) => void }

/** Returns what is completed, if it is an id. */
function placeOf(root: RootCommand, words: readonly string[]): Place | undefined {
  const before = words.slice(0, -1)
  const length = [3, 2, 1].find((count) => root.commands.has(before.slice(0, count).join(' ')))
  const command = root.commands.get(before.slice(0, length).join(' '))
  if (length === undefined || command === undefined) return undefined
  const option = /^--([a-z]+)$/.exec(before.at(-1) ?? '')?.[1] ?? ''
  const ofOption = command.options.get(option)
  if (ofOption !== undefined && ofOption.isBoolean !== true) {
    const kind = kinds[option]
    return kind && { kind, set: (handler) => void command.option(option, ofOption.description, handler) }
  }
  const given = before.slice(length).filter((word) => !word.startsWith('-')).length
  const argument = [...command.arguments.values()][given]
  const kind = argument && kinds[argument.name]
  return kind && { kind, set: (handler) => void (argument.handler = handler) }
}

async function idsOf(kind: IdKind, begin: string, configOf: () => Config): Promise<readonly string[]> {
  const config = configOf()
  const { source, file } = config.catalog
  const stats = source === 'file' && existsSync(file) ? statSync(file) : undefined
  if (stats?.isFile() === true && stats.size <= maxFileBytes) return idsIn(readFileSync(file, 'utf8'), kind)
  const { createAdminClient } = await import('./listen/admin-client.ts')
  const query =
    kind === 'sources'
      ? ''
      : `?limit=${mostListed}${begin === '' ? '' : `&search=${encodeURIComponent(begin)}`}`
  const signal = AbortSignal.timeout(answerWithinMs)
  const answer = await createAdminClient(config).ask('GET', `/v1/${kind}${query}`, undefined, signal)
  return idsOfList(answer, kind)
}

async function idsIn(text: string, kind: IdKind): Promise<readonly string[]> {
  const { looksLikeJson, readJson } = await import('../catalog/json.ts')
  const { readYaml } = await import('../catalog/yaml.ts')
  const read = looksLikeJson(text) ? readJson(text) : readYaml(text)
  return read.ok ? idsOfList(read.value, kind) : []
}

function idsOfList(value: unknown, kind: IdKind): readonly string[] {
  const list: unknown = Object(value)[kind]
  if (!Array.isArray(list)) return []
  return list.flatMap((one): string[] => {
    const id: unknown = Object(one).id
    return typeof id === 'string' ? [id] : []
  })
}
