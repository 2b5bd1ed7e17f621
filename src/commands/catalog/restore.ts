import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { text as textOfStream } from 'node:stream/consumers'
import type { ChangeAnswer } from '../../catalog-log/desk.ts'
import { madeOf } from '../../catalog-log/difference.ts'
import type { CatalogLog } from '../../catalog-log/log.ts'
import { RecordSeals } from '../../catalog-log/record.ts'
import { readSealedExport, sealedExport } from '../../catalog-log/sealed-file.ts'
import { catalogKeys } from '../../roles/catalog/keys.ts'
import { TopicMemory } from '../../roles/catalog/topic-memory.ts'
import { type OpenedDesk, refusalText } from '../../roles/operations/catalog-desk.ts'
import { differenceLines } from '../../roles/operations/catalog-history.ts'
import { namesOf, type Newer, planRestore, type RestorePlan } from '../../catalog-log/restore.ts'
import { SealError } from '../../catalog-log/seal.ts'
import { counted, type Screen } from '../../roles/start/progress.ts'
import { topicNames } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { atCatalogDesk, type CatalogRun } from '../command/catalog-desk.ts'
import { whoIsThis } from '../command/operator.ts'
import { confirms } from '../command/question.ts'
import { writeLine } from '../command/tools.ts'

/** The most newer objects that a refusal names. */
const mostNamed = 10

/**
 * Writes everything that the topic has into a file, with sealed secrets and tokens. `isOfCopy`: what the copy
 * on this machine has. A path `-` is standard output.
 */
export async function exportSealed(
  run: CatalogRun,
  { path, isOfCopy }: { readonly path: string; readonly isOfCopy: boolean },
): Promise<string[]> {
  const topic = topicNames(run.config).catalog
  const seals = new RecordSeals(topic, catalogKeys(run.config))
  const log = isOfCopy ? await copied(run) : await looked(run)
  const text = sealedExport(log, seals, topic)
  if (text === undefined) throw new StartError(`The topic ${topic} has nothing to export.`)
  if (path === '-') return [text.trimEnd()]
  await written(path, text)
  return [
    `${path} has ${countsOf(log)}, as of change ${log.head?.revision ?? 0}. It is of use only with the keys of catalog.keysFile.`,
  ]
}

function looked(run: CatalogRun): Promise<CatalogLog> {
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const log = await desk.look()
    if (log.damage !== undefined)
      throw new StartError(
        `The topic can not be exported: ${log.damage}. \`--copy\` exports the last good copy on this machine.`,
      )
    return log
  })
}

async function copied({ config, log }: CatalogRun): Promise<CatalogLog> {
  const copy = await new TopicMemory(config, log).read()
  if (copy !== undefined) return copy.log
  throw new StartError(
    'This machine has no copy of the catalog that can be used: run the command in a pod of a worker, a gateway or the admin API, with its SLUICE_STATE_FOLDER.',
  )
}

async function written(path: string, text: string): Promise<void> {
  const part = `${path}.${randomBytes(6).toString('hex')}.part`
  try {
    await writeFile(part, text, { mode: 0o600, flush: true })
    await rename(part, path)
  } catch (cause) {
    await rm(part, { force: true }).catch(() => undefined)
    throw new WrongUseError(
      `${path} can not be written: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
}

export type RestoreOrder = {
  /** The sealed export, or `-` for standard input. */
  readonly path: string
  readonly newer: Newer
  readonly isDryRun: boolean
  /** True if the question is answered already. */
  readonly isSure: boolean
  readonly by: string | undefined
}

/** Makes the topic what a sealed export has, in one change, after a question. */
export function restoreCatalog(
  run: CatalogRun & { readonly screen: Screen },
  { path, newer: what, isDryRun, isSure, by = whoIsThis() }: RestoreOrder,
): Promise<string[]> {
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const exported = await readExport(run, path)
    const revision = exported.head?.revision ?? 0
    const plan = planned(desk.definitions, { present: await desk.look(), exported }, what)
    const { edits, newer, isRepair } = plan
    if (newer.length > 0 && what === 'refuse')
      throw new StartError(
        `${counted(newer.length, 'object')} changed after this export (change ${revision}): ${namesOf(newer, mostNamed)}. \`--keep-newer\` leaves them as they are, and \`--replace-newer\` makes them what the export has.`,
      )
    if (edits.length === 0) return [`Nothing differs from ${path}.`]
    const preview = await restore(desk, plan, { revision, by, isDryRun: true })
    for (const line of linesOf(desk, preview)) writeLine(line)
    const { length: count } = edits
    const many = isRepair
      ? `${counted(count, 'object')}, because records of the topic are missing,`
      : counted(count, 'object')
    if (isDryRun) return [`${many} would be written`]
    const question = `Write ${many} as of change ${revision}?`
    if (!isSure && !(await confirms(run.screen, question))) return ['Nothing was changed.']
    const answer = await restore(desk, plan, { revision, by, isDryRun: false })
    return [
      `${counted(count, 'object')} written: change ${answer.revision}. \`sluice catalog undo ${answer.revision}\` takes it back, but not for tokens.`,
    ]
  })
}

/** Makes the restore, or says what it would change. */
async function restore(
  desk: Pick<OpenedDesk, 'change'>,
  { edits, isRepair }: RestorePlan,
  { revision, by, isDryRun }: { readonly revision: number; readonly by: string; readonly isDryRun: boolean },
): Promise<Accepted> {
  const note = `restored an export of change ${revision}`
  return allowed(await desk.change({ edits, by, note, isDryRun, isRepair, accepts: true }))
}

export type AcceptOrder = {
  /** The last change that some process has seen. `undefined`: of this machine. */
  readonly after: number | undefined
  /** True if the question is answered already. */
  readonly isSure: boolean
  readonly by: string | undefined
}

/** Says that the topic is the catalog as it is now, after a question. */
export function acceptCatalog(
  run: CatalogRun & { readonly screen: Screen },
  { after, isSure, by = whoIsThis() }: AcceptOrder,
): Promise<string[]> {
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const log = await desk.look()
    const question = `The topic has ${countsOf(log)}. Is this the catalog from now on? What else there was is given up.`
    if (!isSure && !(await confirms(run.screen, question))) return ['Nothing was changed.']
    const note = `accepted the topic as it is, with ${countsOf(log)}`
    const answer = allowed(await desk.change({ edits: [], by, note, accepts: true, after }))
    return [`The topic is the catalog, with ${countsOf(log)}: change ${answer.revision}`]
  })
}

async function readExport({ config }: CatalogRun, path: string): Promise<CatalogLog> {
  const topic = topicNames(config).catalog
  const text = await (path === '-' ? textOfStream(process.stdin) : readFile(path, 'utf8')).catch(
    (cause: unknown) => {
      throw new WrongUseError(
        `${path} can not be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      )
    },
  )
  const read = readSealedExport(text, new RecordSeals(topic, catalogKeys(config)), topic)
  if (!read.ok) throw new StartError(`${path} can not be used: ${read.problem}.`)
  return read.log
}

function planned(...given: Parameters<typeof planRestore>): ReturnType<typeof planRestore> {
  try {
    return planRestore(...given)
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    throw new StartError(`The export can not be restored: ${error.message}.`, { cause: error })
  }
}

function linesOf({ definitions }: OpenedDesk, { differences }: Accepted): string[] {
  return differences
    .filter((one) => madeOf(one) !== 'changed' || !definitions.isSame(one.name, one.before, one.after))
    .flatMap((one) => differenceLines(definitions, one, { ofAll: false }))
}

type Accepted = Extract<ChangeAnswer, { ok: true }>

function allowed(answer: ChangeAnswer): Accepted {
  if (!answer.ok) throw new StartError(refusalText(answer))
  return answer
}

function countsOf({ counts }: CatalogLog): string {
  const { source, destination, token } = counts
  return `${counted(source, 'source')}, ${counted(destination, 'destination')} and ${counted(token, 'token')}`
}
