import { type AdminAnswer, done, problem } from '../admin/problem.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { isString, recordOf } from '../catalog/plain-data.ts'
import { type AtDesk, refusedChange } from './catalog-calls.ts'
import { beginRotation, endRotation, type RotateAnswer } from './operations/rotate-secret.ts'

/** Creates the handlers of the calls that replace the secret of a destination. */
export function rotateCalls(atDesk: AtDesk): Pick<AdminCalls, 'rotate_secret' | 'end_secret'> {
  return {
    rotate_secret: (request) =>
      atDesk(async (desk) => {
        const { oldSecretEndsAt } = recordOf(request.body)
        const oldEndsAt = isString(oldSecretEndsAt) ? oldSecretEndsAt : undefined
        const order = orderOf(request)
        return answerOf(order.id, await beginRotation(desk, { ...order, oldEndsAt }))
      }),
    end_secret: (request) =>
      atDesk(async (desk) => {
        const order = orderOf(request)
        return answerOf(order.id, await endRotation(desk, order))
      }),
  }
}

function orderOf({ params, query, token }: AdminRequest) {
  return { id: params['destination'] ?? '', by: token.name, isDryRun: query['dryRun'] === 'true' }
}

function answerOf(destination: string, answer: RotateAnswer): AdminAnswer {
  if (!answer.ok)
    return answer.kind === 'blocked' ? problem('conflict', answer.problem) : refusedChange(answer)
  const { secret, state, version, revision } = answer.rotated
  const headers = version === undefined ? {} : { etag: `"${version}"` }
  return done({ destination, state, secret: secret ?? null, version, revision }, 200, headers)
}
