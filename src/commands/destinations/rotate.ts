import {
  beginKeyRotation,
  beginRotation,
  endKeyRotation,
  endRotation,
  rotateRefusal,
} from '../../roles/operations/rotate-secret.ts'
import { refuseInFile } from '../../roles/catalog/in-file.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import type { CatalogRun } from '../command/catalog-desk.ts'
import { atDeskOf } from '../command/edit-object.ts'
import { whoIsThis } from '../command/operator.ts'

export type RotateCommand = {
  readonly id: string
  /** True: ends the rotation that was begun. */
  readonly isEnd: boolean
  /** True: for the keys of Ed25519, and not for the secret. */
  readonly isEd25519: boolean
  readonly oldEndsAt: string | undefined
  readonly isDryRun: boolean
  readonly by: string | undefined
  readonly asJson: boolean
}

/** Makes a new secret of a destination beside the old one, or ends the old one. */
export function rotate(run: CatalogRun, command: RotateCommand): Promise<string[]> {
  const { id, isEnd, isEd25519, oldEndsAt, isDryRun, by = whoIsThis(), asJson } = command
  const [begins, ends] = isEd25519
    ? (['rotate-keys', 'end-old-key'] as const)
    : (['rotate', 'end-old'] as const)
  refuseInFile(run.config, { deed: isEnd ? ends : begins, id })
  if (isEnd && oldEndsAt !== undefined) throw new WrongUseError('Give --end or --old-ends-at, and not both.')
  if (isEd25519 && oldEndsAt !== undefined)
    throw new WrongUseError('Give --ed25519 or --old-ends-at, and not both: an old key ends by --end.')
  return atDeskOf(run, 'destination', async (desk) => {
    const order = { id, by, isDryRun }
    const rotation = isEd25519
      ? (isEnd ? endKeyRotation : beginKeyRotation)(desk, order)
      : isEnd
        ? endRotation(desk, order)
        : beginRotation(desk, { ...order, oldEndsAt })
    const answer = await rotation
    if (!answer.ok) {
      const problem = rotateRefusal(answer)
      throw answer.kind === 'missing' ? new WrongUseError(problem) : new StartError(problem)
    }
    const { secret, publicKey, state, version } = answer.rotated
    if (asJson)
      return [
        JSON.stringify({
          destination: id,
          state,
          secret: secret ?? null,
          ...(isEd25519 && { publicKey: publicKey ?? null }),
          version,
        }),
      ]
    if (isDryRun) return [`destination/${id} would change`]
    if (isEd25519) return keyLines(id, state, publicKey)
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

function keyLines(id: string, state: 'first' | 'both' | 'ended', publicKey: string | undefined): string[] {
  const made = publicKey === undefined ? [] : [`The new public key of ${id}: ${publicKey}`]
  if (state === 'ended') return [`${id}: requests are signed with the newest key only`]
  if (state === 'first') return [...made, `${id}: requests are signed with it from now on`]
  return [
    ...made,
    `${id}: requests are signed with the old and the new key (docs/verifying-signatures.md)`,
    `  when all receivers have the new one: sluice destinations rotate ${id} --ed25519 --end`,
  ]
}
