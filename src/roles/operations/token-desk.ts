import { setTimeout as delay } from 'node:timers/promises'
import { scopeText } from '../../admin/scope.ts'
import { contentText, type KeptToken, newSecret, storedToken, type Token } from '../../admin/tokens.ts'
import type { ObjectName } from '../../catalog-log/names.ts'
import type { ChangeAnswer } from '../../catalog-log/desk.ts'
import type { OpenedDesk } from './catalog-desk.ts'

/** How long a token lasts if nobody says how long, in milliseconds: 90 days. */
export const defaultLastsMs = 90 * 24 * 3_600_000

/** How long a call waits until this process has read its own change, in milliseconds. */
const readWithinMs = 5_000

/** What a new token is to be. */
export type TokenOrder = Pick<
  KeptToken,
  'name' | 'right' | 'seesContent' | 'scope' | 'endsAtMs' | 'family'
> & {
  readonly by: string
}

/** Makes a token in the topic of the catalog. `token`: its text, which is stored nowhere. */
export async function makeToken(
  desk: Pick<OpenedDesk, 'change'>,
  { by, ...order }: TokenOrder,
): Promise<{ readonly token: string; readonly kept: KeptToken; readonly answer: ChangeAnswer }> {
  const { token, digest } = newSecret()
  const kept: KeptToken = { ...order, digest, madeBy: by, madeAtMs: Date.now() }
  const given = storedToken(kept)
  const note = `+${tokenText(kept)}`
  const edit = { name: tokenName(order.name), op: 'put', given, base: 'none' } as const
  return { token, kept, answer: await desk.change({ edits: [edit], by, note }) }
}

/** Revokes a token of the topic. */
export function removeToken(
  desk: Pick<OpenedDesk, 'change'>,
  token: Pick<Token, 'name' | 'right' | 'seesContent' | 'scope' | 'endsAtMs'>,
  by: string,
): Promise<ChangeAnswer> {
  const edit = { name: tokenName(token.name), op: 'remove' } as const
  return desk.change({ edits: [edit], by, note: `-${tokenText(token)}` })
}

/** Waits until this process has read its own change, so that the change holds when its answer comes. */
export async function untilRead(
  topic: { readonly revision: () => number } | undefined,
  revision: number,
): Promise<void> {
  const untilMs = performance.now() + readWithinMs
  while ((topic?.revision() ?? Infinity) < revision && performance.now() < untilMs) await delay(5)
}

/** Describes a token for the audit trail: its name, right, scope and end. */
function tokenText({
  name,
  right,
  seesContent,
  scope,
  endsAtMs,
}: Pick<Token, 'name' | 'right' | 'seesContent' | 'scope' | 'endsAtMs'>): string {
  const end = endsAtMs === undefined ? 'without an end' : `until ${new Date(endsAtMs).toISOString()}`
  const content = contentText({ right, seesContent })
  return `${name} ${right}${content === '' ? '' : ` ${content}`}, ${scopeText(scope)}, ${end}`
}

function tokenName(id: string): ObjectName {
  return { kind: 'token', id }
}
