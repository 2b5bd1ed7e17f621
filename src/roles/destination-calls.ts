import { done } from '../admin/problem.ts'
import type { AdminCalls } from '../admin/server.ts'
import type { Config } from '../config/schema.ts'
import { asked, type Log, refused } from './admin-calls.ts'
import { pausedData, resumedData } from './destinations.ts'
import type { PauseDesk } from './pause-desk.ts'

/**
 * Creates the handlers of the admin API's calls about destinations that Sluice has paused. When Kafka doesn't
 * answer, a handler answers with a problem instead of rejecting.
 */
export function destinationCalls(
  desk: PauseDesk,
  config: Config,
  log: Log,
): Pick<AdminCalls, 'list_paused' | 'resume_destination'> {
  return {
    list_paused: () =>
      asked(log, desk.paused(), (paused) =>
        paused.ok ? done({ destinations: paused.value.map(pausedData) }) : refused(paused),
      ),
    resume_destination({ params: { destination = '' }, token }) {
      log.info({ destination, by: token.name }, 'a destination is to be resumed')
      return asked(log, desk.resume(destination, token.name), (resumed) =>
        resumed.ok ? done(resumedData(resumed.value, config)) : refused(resumed),
      )
    },
  }
}
