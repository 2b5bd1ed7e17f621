import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, noToken, problem } from '../admin/problem.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import { readSelector } from '../catalog/labels.ts'
import { listOf, recordOf } from '../catalog/plain-data.ts'
import type { ChangeAnswer, ChangedObject } from '../catalog-log/desk.ts'
import { madeOf } from '../catalog-log/difference.ts'
import { entryKinds, keyOf } from '../catalog-log/names.ts'
import { appliedEdits, pruneRefusal, type WantedObject } from './bulk/applied-edits.ts'
import { type AtDesk, refusedChange } from './catalog-calls.ts'
import { changedOnce, onceOf } from './once.ts'
import type { OpenedDesk } from './operations/catalog-desk.ts'

/** How many change sets may be judged at the same time. One of 5,000 objects takes seconds of a processor. */
const setsAtOnce = { most: 2, mostOfToken: 1, what: 'change sets' }
const mostObjects = 5_000

/** Creates the handler of the call that makes many objects as they are given, in one change. */
export function applyCalls(atDesk: AtDesk): Pick<AdminCalls, 'apply_catalog'> {
  const atOnce = new AtOnce(setsAtOnce)
  return {
    apply_catalog: (request) =>
      atOnce.run(shareOf(request.token), async () =>
        request.isInForce() ? atDesk(request, (desk) => applied(desk, request), { deed: 'apply' }) : noToken,
      ),
  }
}

async function applied(desk: OpenedDesk, request: AdminRequest): Promise<AdminAnswer> {
  const { body, query, token } = request
  const isDryRun = query['dryRun'] === 'true'
  const { prune, allowEmpty = false }: { prune?: string; allowEmpty?: boolean } = Object(body)
  const pruned = prune === undefined ? undefined : readSelector(prune)
  if (prune !== undefined && pruned === undefined)
    return problem('bad_request', 'prune: write KEY=VALUE, such as tenant=acme.')
  const objects = wantedIn(recordOf(body))
  if (typeof objects === 'string') return problem('bad_request', objects)
  const once = onceOf('apply_catalog', request)
  const order = { by: token.name, note: 'applied', isDryRun, once }
  return changedOnce<ChangeAnswer | BadRequest>(desk, once, {
    async make() {
      const edits = appliedEdits(objects, { log: await desk.look(), desk, pruned })
      const empty = allowEmpty
        ? undefined
        : pruneRefusal(objects, edits, { pruned, allow: 'send allowEmpty' })
      if (empty !== undefined) return { ok: false, kind: 'bad request', problem: empty }
      return edits.length > mostObjects ? tooMany : desk.change({ ...order, edits })
    },
    answer(answer) {
      if (answer.ok) return answerOf(answer.revision, answer.changed, isDryRun)
      return answer.kind === 'bad request' ? problem('bad_request', answer.problem) : refusedChange(answer)
    },
    again: ({ revision, objects: made }) =>
      answerOf(
        revision,
        made.map((one) => ({ name: one.name, what: madeOf(one) })),
        false,
      ),
  })
}

type BadRequest = { readonly ok: false; readonly kind: 'bad request'; readonly problem: string }
const tooMany: BadRequest = {
  ok: false,
  kind: 'bad request',
  problem: `Change at most ${mostObjects} objects at once.`,
}

function answerOf(
  revision: number,
  objects: readonly Pick<ChangedObject, 'name' | 'what'>[],
  isPreview: boolean,
): AdminAnswer {
  const changed = objects.filter(({ what }) => what !== 'unchanged')
  return done({
    isPreview,
    revision,
    count: changed.length,
    objects: changed.map(({ name, what }) => ({ object: keyOf(name), what })),
  })
}

/** Returns the objects of a body, by key, or what is wrong with it. Sources come first. */
function wantedIn(body: Readonly<Record<string, unknown>>): ReadonlyMap<string, WantedObject> | string {
  const found = new Map<string, WantedObject>()
  for (const kind of entryKinds)
    for (const [index, entry] of listOf(body[`${kind}s`]).entries()) {
      const given = recordOf(entry)
      const { id } = given
      if (typeof id !== 'string') return `${kind}s[${index}] has no id: add one.`
      const name = { kind, id }
      if (found.has(keyOf(name))) return `${keyOf(name)} is there twice.`
      found.set(keyOf(name), { name, given })
    }
  return found
}
