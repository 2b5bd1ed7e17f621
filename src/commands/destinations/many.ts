import { everything } from '../../admin/scope.ts'
import { readSelector } from '../../catalog/labels.ts'
import { type BulkDone, changeMany, mostOfBulk, type Skipped } from '../../roles/bulk/bulk.ts'
import { refusalText } from '../../roles/operations/catalog-desk.ts'
import { assess, type AssessedDestination } from '../../roles/operations/destination-conditions.ts'
import { listDestinations } from '../../roles/operations/destination-list.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { counted } from '../../roles/start/progress.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { atCatalogDesk } from '../command/catalog-desk.ts'
import { whoIsThis } from '../command/operator.ts'
import { confirms } from '../command/question.ts'
import { atDesk, pictureOf, type Run } from './destinations.ts'

export type ManyCommand = {
  readonly deed: 'pause' | 'resume'
  readonly label: string | undefined
  readonly search: string | undefined
  readonly isDryRun: boolean
  readonly isSure: boolean
  readonly by: string | undefined
}

/** Pauses or resumes all destinations that are chosen, in one change of the catalog, after a question. */
export async function changeChosen(run: Run, command: ManyCommand): Promise<string[]> {
  const { deed, isDryRun, isSure, by = whoIsThis() } = command
  refuseInFile(run.config, { deed })
  const chosen = await chosenOf(run, command)
  if (chosen.length > mostOfBulk.change)
    throw new WrongUseError(
      `This selects ${chosen.length} destinations, and may select ${mostOfBulk.change}: select fewer.`,
    )
  return atCatalogDesk(run, 'destinations', async (desk) => {
    const make = async (isPreview: boolean): Promise<BulkDone> => {
      const order = { deed, labels: {}, isPreview, by, scope: everything }
      const made = await changeMany(desk, chosen, order)
      if (made.ok) return made
      throw new StartError(made.kind === 'refused' ? refusalText(made.change) : 'This may not be done.')
    }
    const preview = await make(true)
    const many = counted(preview.destinations.length, 'destination')
    const lines = [
      ...preview.destinations.map((id) => `~ destination/${id}`),
      ...skippedLines(preview.skipped),
    ]
    if (preview.destinations.length === 0) return [...lines, `There is nothing to ${deed}.`]
    run.screen.write(`${lines.join('\n')}\n`)
    if (isDryRun) return [`${many} would be ${done[deed]}`]
    const question = `${deed === 'pause' ? 'Pause' : 'Resume'} ${many}?`
    if (!isSure && !(await confirms(run.screen, question))) return ['Nothing was changed.']
    const { destinations, revision } = await make(false)
    return [`${counted(destinations.length, 'destination')} ${done[deed]}: change ${revision}`]
  })
}

const done = { pause: 'paused', resume: 'resumed' } as const

function skippedLines(skipped: readonly Skipped[]): string[] {
  return skipped.map(({ destination, why }) => `  destination/${destination}: ${why}`)
}

async function chosenOf(
  run: Run,
  { label, search }: Pick<ManyCommand, 'label' | 'search'>,
): Promise<readonly AssessedDestination[]> {
  const selector = label === undefined ? undefined : readSelector(label)
  if (label !== undefined && selector === undefined)
    throw new WrongUseError('--label: write KEY=VALUE, such as tenant=acme.')
  const catalog = await readCatalog(run.config, run.log, 'destinations')
  return atDesk(run, async (desk) => {
    const { pauses, health } = await pictureOf(run, desk)
    return listDestinations(assess(catalog, pauses, health), {
      label: selector,
      search,
      limit: Math.max(1, catalog.destinations.size),
    }).listed
  })
}
