import { limitOf } from '../admin/limited.ts'
import { type AdminAnswer, done, problem } from '../admin/problem.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import type { ObjectDifference } from '../catalog-log/difference.ts'
import { keyOf } from '../catalog-log/names.ts'
import {
  changeData,
  findChange,
  objectData,
  undoChange,
  wholeChangeData,
} from './operations/catalog-history.ts'
import { type AtDesk, refusedChange } from './catalog-calls.ts'
import type { OpenedDesk } from './operations/catalog-desk.ts'
import { changedOnce, onceOf } from './once.ts'

type Calls = Pick<AdminCalls, 'list_catalog_changes' | 'show_catalog_change' | 'undo_catalog_change'>

/** The most objects that the answer to an undo names. */
const mostNamed = 100

/** Creates the handlers of the calls that read the history of the catalog, and undo a change. */
export function catalogHistoryCalls(atAnyDesk: AtDesk): Calls {
  const atDesk: AtDesk = (request, work) => atAnyDesk(request, work, { deed: 'history' })
  return {
    list_catalog_changes: (request) =>
      atDesk(request, async ({ history, definitions }) => {
        const { query, token } = request
        const { object: key, cursor } = query
        const before = cursor === undefined ? undefined : Number(cursor)
        const { changes, next } = await history.page({ before, limit: limitOf(query), key })
        return done({
          changes: changes.map((change) => changeData(definitions, change, showsTo(token))),
          cursor: next === undefined ? null : String(next),
        })
      }),
    show_catalog_change: (request) =>
      atDesk(request, async (desk) => {
        const { params, query, token } = request
        const found = await findChange(desk, Number(params['revision']))
        if (!found.ok) return problem('not_found', found.problem)
        const { object, cursor = '0' } = query
        const meant = found.change.objects.filter(
          ({ name }) => object === undefined || keyOf(name) === object,
        )
        const next = Number(cursor) + limitOf(query)
        const page = meant.slice(Number(cursor), next)
        const shown = wholeChangeData(desk.definitions, found.change, page, showsTo(token))
        return done({ ...shown, cursor: next < meant.length ? String(next) : null })
      }),
    undo_catalog_change: (request) => atAnyDesk(request, (desk) => undoOnce(desk, request), { deed: 'undo' }),
  }
}

function undoOnce(desk: OpenedDesk, request: AdminRequest): Promise<AdminAnswer> {
  const { params, query, token } = request
  const revision = Number(params['revision'])
  const once = onceOf('undo_catalog_change', request)
  const order = { revision, by: token.name, isDryRun: query['dryRun'] === 'true', once }
  const undone = (at: number, differences: readonly ObjectDifference[]): AdminAnswer =>
    done({
      revision: at,
      undoes: revision,
      count: differences.length,
      objects: differences
        .slice(0, mostNamed)
        .map((one) => objectData(desk.definitions, one, showsTo(token))),
    })
  return changedOnce(desk, once, {
    make: () => undoChange(desk, order),
    answer: (answer) => {
      if (answer.ok) return undone(answer.revision, answer.differences)
      if (answer.kind === 'unknown') return problem('not_found', answer.problem)
      return answer.kind === 'blocked' ? problem('conflict', answer.problem) : refusedChange(answer)
    },
    again: (change) => undone(change.revision, change.objects),
  })
}

function showsTo({ right }: AdminRequest['token']): { readonly showsUrls: boolean } {
  return { showsUrls: right === 'admin' }
}
