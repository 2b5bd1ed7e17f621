import { duration, integer, text } from './key.ts'
import { SECOND, MINUTE, HOUR } from './units.ts'

/** The settings of notices. */
export const noticesKeys = {
  notices: {
    source: text({
      default: 'sluice',
      shape: {
        accepts: (given) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(given),
        expected: 'the id of a source: up to 100 of A-Z a-z 0-9 . _ -',
      },
      description:
        'The source of notices about failing destinations (docs/notices.md). The destinations that the catalog connects to it get them. Without such a source in the catalog there are no notices.',
    }),
    failingAfter: duration({
      default: 5 * MINUTE,
      min: SECOND,
      max: 24 * HOUR,
      description: 'How long a URL must fail, or a destination need a backfill, before a notice tells it.',
    }),
    window: duration({
      default: HOUR,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'At most one notice of a kind is sent about the same URL or destination in this time. It has the counts since the one before.',
    }),
    deadLetters: integer({
      default: 10,
      min: 0,
      max: 1_000_000_000,
      description:
        'How many dead letters of a destination within `notices.window` make a notice. 0: there is no such notice.',
    }),
    paced: integer({
      default: 1_000,
      min: 0,
      max: 1_000_000_000,
      description:
        'How many times within `notices.window` deliveries of a destination that works are put off, since it takes them too slowly, until a notice tells it. 0: there is no such notice.',
    }),
  },
} as const
