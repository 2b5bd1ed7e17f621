/**
 * What happens in the run that the pictures of the dashboards show. `test/fault/dashboard-run.ts` plays it, and
 * `docs/dashboards.md` tells it. All times are minutes of the pictures.
 */

export type Act = {
  readonly id: string
  readonly atMin: number
  /** What happens, for the page of the docs. */
  readonly about: string
  /** The panels that show it. */
  readonly seenIn: string
  /** The name and the color of the shade that the pictures have until the next act. */
  readonly shade?: { readonly name: string; readonly color: string }
}

export const storyMinutes = 7

export const story = [
  {
    id: 'begin',
    atMin: 0,
    about:
      'All is well, except for two small destinations: `legacy` always fails (500), and `refunds` refuses every message (404). Together they get one delivery of a hundred.',
    seenIn: 'Requests that fail, Dead letters',
  },
  {
    id: 'sync',
    atMin: 0.75,
    about: 'An audience is synced for the first time: 120 users join.',
    seenIn: 'Users of syncs',
  },
  {
    id: 'slow',
    atMin: 1.5,
    about:
      'The endpoint of `crm` gets slow, and takes less than comes. What it does not take waits for its turn. Also, the second URL of `search` hangs.',
    seenIn: 'How long requests take, Waiting for their turn, Requests that a URL never got',
    shade: { name: 'crm slow', color: '#d97706' },
  },
  {
    id: 'fails',
    atMin: 2.25,
    about:
      'The endpoint of `crm` fails (503). Its messages wait for their next try. Messages to others go on as before.',
    seenIn: 'Requests that succeed, Answers by status, Longest open breaker, Waiting for a retry',
    shade: { name: 'crm fails', color: '#dc2626' },
  },
  {
    id: 'recovers',
    atMin: 3.25,
    about: 'It works again, and its backlog drains.',
    seenIn: 'Waiting for a retry, Append to delivery',
  },
  {
    id: 'connect',
    atMin: 4,
    about:
      'An edit of the catalog pauses `partner`, and connects `ads`, which is still off, to the audience. The audience is synced again: 40 users leave it, and 40 join.',
    seenIn: 'Destinations by state, Waiting for their turn, Need a backfill',
  },
  {
    id: 'resume',
    atMin: 4.75,
    about:
      'An edit resumes `partner`, whose queue drains at its rate limit, and switches `ads` on, which gets all present members in a first sync.',
    seenIn: 'Queues: in and out, First syncs',
  },
  {
    id: 'deploy',
    atMin: 5.75,
    about:
      'A deployment: all processes start anew with another build, one after the other. Workers hand over their partitions.',
    seenIn: 'What runs, Rebalances, Last restore',
  },
  {
    id: 'replay',
    atMin: 6.35,
    about: 'The endpoint of `refunds` is repaired, and its dead letters are sent again.',
    seenIn: 'Replays, Sent again',
  },
] as const satisfies readonly Act[]

export type ActId = (typeof story)[number]['id']

/** Returns the periods with a shade, in minutes. */
export function shades(): { name: string; color: string; fromMin: number; untilMin: number }[] {
  const acts: readonly Act[] = story
  return acts.flatMap(({ atMin, shade }, index) =>
    shade === undefined
      ? []
      : [{ ...shade, fromMin: atMin, untilMin: acts[index + 1]?.atMin ?? storyMinutes }],
  )
}
