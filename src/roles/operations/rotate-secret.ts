import { randomBytes } from 'node:crypto'
import { newSigningKey, publicKeysOf } from '../../catalog/features/signing-keys.ts'
import { isString, listOf, recordOf } from '../../catalog/plain-data.ts'
import type { ChangeAnswer, Once } from '../../catalog-log/desk.ts'
import type { Definitions } from '../../catalog-log/definitions.ts'
import type { HistoryChange } from '../../catalog-log/history.ts'
import { keyOf } from '../../catalog-log/names.ts'
import { type OpenedDesk, refusalText } from './catalog-desk.ts'

export type RotateOrder = {
  readonly id: string
  readonly by: string
  /**
   * The time from which requests are signed with the new secret only (ISO 8601). `undefined`: until the
   * rotation is ended.
   */
  readonly oldEndsAt: string | undefined
  readonly isDryRun: boolean
  readonly once?: Once | undefined
}

export type Rotated = {
  /** The new secret. `undefined` if nothing was changed, or if the rotation was ended. */
  readonly secret: string | undefined
  /** The public key of a new key of Ed25519, in the format of Standard Webhooks. */
  readonly publicKey?: string | undefined
  /** `first`: there was no secret. `both`: the old secret is valid beside the new one. `ended`: it isn't. */
  readonly state: 'first' | 'both' | 'ended'
  readonly version: number | undefined
  readonly revision: number
}

export type RotateAnswer =
  | { readonly ok: true; readonly rotated: Rotated }
  | Extract<ChangeAnswer, { ok: false }>
  /** The present state of the destination doesn't allow it. */
  | { readonly ok: false; readonly kind: 'blocked'; readonly problem: string }

type RotateDesk = Pick<OpenedDesk, 'look' | 'change' | 'shown'>

/** Returns why a rotation was refused, and what to do. */
export function rotateRefusal(answer: Extract<RotateAnswer, { ok: false }>): string {
  return answer.kind === 'blocked' ? answer.problem : refusalText(answer)
}

/** Makes a new secret. The old one stays valid beside it, until the rotation is ended. */
export function beginRotation(desk: RotateDesk, order: RotateOrder): Promise<RotateAnswer> {
  const { id, oldEndsAt } = order
  return rotated(desk, order, (present) => {
    if (present['nextSharedSecret'] !== undefined)
      return blocked(
        `The destination ${id} has a next secret already: end that rotation (\`sluice destinations rotate ${id} --end\`), or undo its change (\`sluice catalog history destination/${id}\`).`,
      )
    const secret = `whsec_${randomBytes(secretBytes).toString('base64')}`
    if (present['sharedSecret'] === undefined) {
      if (oldEndsAt === undefined)
        return { given: { ...present, sharedSecret: secret }, secret, state: 'first' }
      return blocked(`The destination ${id} has no secret that could end: leave the time out.`)
    }
    const isStandard = recordOf(present['signing'])['standardWebhooks'] === true
    if (!isStandard && oldEndsAt === undefined)
      return blocked(
        `X-Signature is made with one secret, so the old and the new one can not both be valid: say from when on the new one is used (--old-ends-at TIME, oldSecretEndsAt over HTTP), or first set signing: { standardWebhooks: true }, which signs with both (docs/verifying-signatures.md).`,
      )
    const end = oldEndsAt === undefined ? {} : { sharedSecretEndsAt: oldEndsAt }
    return { given: { ...present, nextSharedSecret: secret, ...end }, secret, state: 'both' }
  })
}

/** Ends a rotation: the next secret becomes the only one. */
export function endRotation(desk: RotateDesk, order: Omit<RotateOrder, 'oldEndsAt'>): Promise<RotateAnswer> {
  return rotated(desk, order, (present) => {
    const { nextSharedSecret, ...rest } = present
    if (nextSharedSecret === undefined)
      return blocked(
        `The destination ${order.id} has no next secret: \`sluice destinations rotate ${order.id}\` makes one.`,
      )
    const given: Record<string, unknown> = { ...rest, sharedSecret: nextSharedSecret }
    delete given['sharedSecretEndsAt']
    return { given, secret: undefined, state: 'ended' }
  })
}

/**
 * Makes a new key of Ed25519 beside the old one. Nobody gets to see it: receivers need only its public key.
 */
export function beginKeyRotation(
  desk: RotateDesk,
  order: Omit<RotateOrder, 'oldEndsAt'>,
): Promise<RotateAnswer> {
  const { id } = order
  return rotated(desk, order, (present) => {
    const keys = signingKeysIn(present)
    if (keys.length > 1)
      return blocked(
        `The destination ${id} signs with ${keys.length} keys already: end the old ones first (\`sluice destinations rotate ${id} --ed25519 --end\`).`,
      )
    const key = newSigningKey()
    const signing = { ...recordOf(present['signing']), ed25519: [...keys, key] }
    const publicKey = publicKeysOf([key])[0]?.text
    const state = keys.length === 0 ? 'first' : 'both'
    return { given: { ...present, signing }, secret: undefined, publicKey, state }
  })
}

/** Ends a rotation of keys: the newest key becomes the only one. */
export function endKeyRotation(
  desk: RotateDesk,
  order: Omit<RotateOrder, 'oldEndsAt'>,
): Promise<RotateAnswer> {
  const { id } = order
  return rotated(desk, order, (present) => {
    const keys = signingKeysIn(present)
    if (keys.length < 2)
      return blocked(
        `The destination ${id} has no older key to end: \`sluice destinations rotate ${id} --ed25519\` makes a new one.`,
      )
    const signing = { ...recordOf(present['signing']), ed25519: keys.slice(-1) }
    return { given: { ...present, signing }, secret: undefined, state: 'ended' }
  })
}

function signingKeysIn(definition: Readonly<Record<string, unknown>> | undefined): readonly unknown[] {
  return listOf(recordOf(definition?.['signing'])['ed25519'])
}

/** Returns what a rotation has made, from the history. */
export function rotatedBefore(
  definitions: Definitions,
  { revision, objects }: HistoryChange,
  versions: ReadonlyMap<string, number>,
): Rotated | undefined {
  const [object] = objects
  if (object?.after === undefined) return undefined
  const { name, before, after } = object
  const version = versions.get(keyOf(name))
  const [keysBefore, keysAfter] = [signingKeysIn(before).length, signingKeysIn(after).length]
  if (keysAfter < keysBefore) return { secret: undefined, state: 'ended', version, revision }
  if (keysAfter > keysBefore) {
    const keys = signingKeysIn(definitions.plain(name, after)).filter(isString)
    const publicKey = publicKeysOf(keys).at(-1)?.text
    return { secret: undefined, publicKey, state: keysBefore === 0 ? 'first' : 'both', version, revision }
  }
  const isFirst = before?.['sharedSecret'] === undefined
  if (!isFirst && after['nextSharedSecret'] === undefined)
    return { secret: undefined, state: 'ended', version, revision }
  const plain = definitions.plain(name, after)
  const secret = plain[isFirst ? 'sharedSecret' : 'nextSharedSecret']
  const state = isFirst ? 'first' : 'both'
  return { secret: isString(secret) ? secret : undefined, state, version, revision }
}

/** What Standard Webhooks recommends: 24 to 64 bytes. */
const secretBytes = 32

type Plan =
  | {
      readonly given: Readonly<Record<string, unknown>>
      readonly secret: string | undefined
      readonly publicKey?: string | undefined
      readonly state: Rotated['state']
    }
  | Extract<RotateAnswer, { kind: 'blocked' }>

function blocked(problem: string): Extract<RotateAnswer, { kind: 'blocked' }> {
  return { ok: false, kind: 'blocked', problem }
}

async function rotated(
  desk: RotateDesk,
  { id, by, isDryRun, once }: Omit<RotateOrder, 'oldEndsAt'>,
  planOf: (present: Readonly<Record<string, unknown>>) => Plan,
): Promise<RotateAnswer> {
  const name = { kind: 'destination', id } as const
  const object = (await desk.look()).objects.get(keyOf(name))
  if (object === undefined) return { ok: false, kind: 'missing', name }
  const plan = planOf(desk.shown(object, { showsUrls: true }))
  if ('ok' in plan) return plan
  const { given, secret, publicKey, state } = plan
  const note = state === 'ended' ? 'the old secret has ended' : 'a new secret'
  const answer = await desk.change({
    edits: [{ name, op: 'put', given, base: object.version }],
    by,
    note,
    once,
    isDryRun,
  })
  if (!answer.ok) return answer
  const version = answer.changed[0]?.version
  const shown = isDryRun ? { secret: undefined } : { secret, publicKey }
  return { ok: true, rotated: { ...shown, state, version, revision: answer.revision } }
}
