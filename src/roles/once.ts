import { createHash } from 'node:crypto'
import { type AdminAnswer, problem } from '../admin/problem.ts'
import type { AdminRequest } from '../admin/server.ts'
import type { AdminCall } from '../admin/admin-route.ts'
import type { Once } from '../catalog-log/desk.ts'
import type { AskedChange } from '../catalog-log/log.ts'
import type { HistoryChange } from '../catalog-log/history.ts'
import type { OpenedDesk } from './operations/catalog-desk.ts'
import { findChange } from './operations/catalog-history.ts'

/**
 * Returns what makes a request the same as an earlier one. `undefined` if it has no Idempotency-Key, or only
 * asks what would happen. Two tokens may use the same key.
 */
export function onceOf(
  call: AdminCall,
  { idempotencyKey, token, params, query, body }: AdminRequest,
): Once | undefined {
  if (idempotencyKey === undefined || query['dryRun'] === 'true') return undefined
  return {
    changeId: digestOf([token.name, idempotencyKey]),
    request: digestOf([call, params, query, body ?? null]),
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
}

export const otherRequest = problem(
  'other_request',
  'Another request had this Idempotency-Key within the last day: send a new key.',
)

type Refused = { readonly ok: false; readonly kind: string }

/**
 * Makes a change of the catalog, or answers as before if the request has asked for it within the last day.
 * `again` makes the answer of the change that was made then.
 */
export async function changedOnce<T extends { readonly ok: true } | Refused>(
  desk: Pick<OpenedDesk, 'look' | 'history'>,
  once: Once | undefined,
  {
    make,
    answer,
    again,
  }: {
    readonly make: () => Promise<T>
    readonly answer: (made: T) => AdminAnswer
    readonly again: (change: HistoryChange, asked: AskedChange) => AdminAnswer
  },
): Promise<AdminAnswer> {
  if (once === undefined) return answer(await make())
  const askedBefore = async (): Promise<AdminAnswer | undefined> => {
    const asked = (await desk.look()).asked(once.changeId)
    if (asked === undefined) return undefined
    if (asked.request !== once.request) return otherRequest
    const found = await findChange(desk, asked.revision)
    return found.ok ? again(found.change, asked) : problem('not_found', found.problem)
  }
  const before = await askedBefore()
  if (before !== undefined) return before
  const made = await make()
  // The same request may have been carried out meanwhile, by another process too. Then the present state
  // refuses it a second time.
  return made.ok ? answer(made) : ((await askedBefore()) ?? answer(made))
}
