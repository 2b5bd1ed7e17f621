import { beginRotation, endRotation, rotateRefusal } from '../../roles/operations/rotate-secret.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import type { CatalogRun } from '../command/catalog-desk.ts'
import { atDeskOf } from '../command/edit-object.ts'
import { whoIsThis } from '../command/operator.ts'

export type RotateCommand = {
  readonly id: string
  /** True: ends the rotation that was begun. */
  readonly isEnd: boolean
  readonly oldEndsAt: string | undefined
  readonly isDryRun: boolean
  readonly by: string | undefined
  readonly asJson: boolean
}

/** Makes a new secret of a destination beside the old one, or ends the old one. */
export function rotate(run: CatalogRun, command: RotateCommand): Promise<string[]> {
  const { id, isEnd, oldEndsAt, isDryRun, by = whoIsThis(), asJson } = command
  if (isEnd && oldEndsAt !== undefined) throw new WrongUseError('Give --end or --old-ends-at, and not both.')
  return atDeskOf(run, 'destination', async (desk) => {
    const answer = isEnd
      ? await endRotation(desk, { id, by, isDryRun })
      : await beginRotation(desk, { id, by, oldEndsAt, isDryRun })
    if (!answer.ok) {
      const problem = rotateRefusal(answer)
      throw answer.kind === 'missing' ? new WrongUseError(problem) : new StartError(problem)
    }
    const { secret, state, version } = answer.rotated
    if (asJson) return [JSON.stringify({ destination: id, state, secret: secret ?? null, version })]
    if (isDryRun) return [`destination/${id} would change`]
    return [
      ...(secret === undefined ? [] : [`The new secret of ${id}, which is shown this once: ${secret}`]),
      ...nextSteps(id, state, oldEndsAt),
    ]
  })
}

function nextSteps(
  id: string,
  state: 'first' | 'both' | 'ended',
  oldEndsAt: string | undefined,
): readonly string[] {
  if (state === 'ended') return [`${id}: requests are signed with the new secret only`]
  if (state === 'first') return [`${id}: had no secret; requests are signed from now on`]
  const when = oldEndsAt === undefined ? 'when all receivers verify with the new one' : `after ${oldEndsAt}`
  return [
    `${id}: the old secret stays valid beside it (docs/verifying-signatures.md)`,
    `  ${when}: sluice destinations rotate ${id} --end`,
  ]
}
