import { type AdminAnswer, done, problem } from '../admin/problem.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { isString, recordOf } from '../catalog/plain-data.ts'
import { type AtDesk, refusedChange } from './catalog-calls.ts'
import type { OpenedDesk } from './operations/catalog-desk.ts'
import {
  beginKeyRotation,
  beginRotation,
  endKeyRotation,
  endRotation,
  type RotateAnswer,
  rotatedBefore,
  type RotateOrder,
} from './operations/rotate-secret.ts'
import { changedOnce, onceOf, otherRequest } from './once.ts'

/** Creates the handlers of the calls that replace the secret of a destination. */
export function rotateCalls(atDesk: AtDesk): Pick<AdminCalls, 'rotate_secret' | 'end_secret'> {
  const rotatedOnce = (
    call: 'rotate_secret' | 'end_secret',
    request: AdminRequest,
    rotate: (desk: OpenedDesk, order: Omit<RotateOrder, 'oldEndsAt'>) => Promise<RotateAnswer>,
  ): Promise<AdminAnswer> => {
    const order = orderOf(request)
    const rotated = (desk: OpenedDesk): Promise<AdminAnswer> => {
      const once = onceOf(call, request)
      return changedOnce(desk, once, {
        make: () => rotate(desk, { ...order, once }),
        answer: (answer) => answerOf(order.id, answer),
        again: (change, { versions }) => {
          const before = rotatedBefore(desk.definitions, change, versions)
          return before === undefined ? otherRequest : answerOf(order.id, { ok: true, rotated: before })
        },
      })
    }
    return atDesk(request, rotated, { deed: deedOf(call, request), id: order.id })
  }
  return {
    rotate_secret: (request) =>
      rotatedOnce('rotate_secret', request, (desk, order) => {
        const { oldSecretEndsAt } = recordOf(request.body)
        if (isOfKeys(request)) return beginKeyRotation(desk, order)
        return beginRotation(desk, {
          ...order,
          oldEndsAt: isString(oldSecretEndsAt) ? oldSecretEndsAt : undefined,
        })
      }),
    end_secret: (request) =>
      rotatedOnce('end_secret', request, isOfKeys(request) ? endKeyRotation : endRotation),
  }
}

function deedOf(call: 'rotate_secret' | 'end_secret', request: AdminRequest) {
  if (call === 'rotate_secret') return isOfKeys(request) ? 'rotate-keys' : 'rotate'
  return isOfKeys(request) ? 'end-old-key' : 'end-old'
}

function isOfKeys({ query }: AdminRequest): boolean {
  return query['ed25519'] === 'true'
}

function orderOf({ params, query, token }: AdminRequest) {
  return { id: params['destination'] ?? '', by: token.name, isDryRun: query['dryRun'] === 'true' }
}

function answerOf(destination: string, answer: RotateAnswer): AdminAnswer {
  if (!answer.ok)
    return answer.kind === 'blocked' ? problem('conflict', answer.problem) : refusedChange(answer)
  const { secret, publicKey, state, version, revision } = answer.rotated
  const headers = version === undefined ? {} : { etag: `"${version}"` }
  const body = { destination, state, secret: secret ?? null, publicKey: publicKey ?? null, version, revision }
  return done(body, 200, headers)
}
