import { duration, durations, SECOND, MINUTE, HOUR } from './key.ts'

/** The settings of the retry ladder (`src/retry/ladder.ts`), with its defaults. */
export const retryKeys = {
  retry: {
    ladder: durations({
      default: [MINUTE, 10 * MINUTE, HOUR, HOUR, HOUR],
      min: 100,
      max: 24 * HOUR,
      maxItems: 20,
      description:
        'The waits before the second try of a message, before its third try, and so on (the ladder). Each distinct wait has a retry topic.',
    }),
    // oxlint-disable-next-line unicorn/no-thenable -- a key of the table; no function, so no await calls it
    then: duration({
      default: 10 * MINUTE,
      min: 100,
      max: 24 * HOUR,
      description:
        'The wait before each further try, after all waits of `retry.ladder`. It is repeated as often as it fits into `retry.limit`.',
    }),
    limit: duration({
      default: 4 * HOUR,
      min: SECOND,
      max: 48 * HOUR,
      description:
        'How long after the first attempt the last attempt may be due. If the last attempt fails too, the message becomes a dead letter. If this limit is longer than 24h, the retry topics have to keep records for longer. So run `sluice topics apply` after a change.',
    }),
  },
} as const
