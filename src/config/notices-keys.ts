import { autoPauseLimits } from '../catalog/auto-pause.ts'
import { boolean, choice, duration, durationOrOff, integer, text, SECOND, MINUTE, HOUR } from './key.ts'

export const noticesKeys = {
  notices: {
    source: text({
      default: 'sluice',
      shape: {
        accepts: (given) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(given),
        expected: 'the id of a source: up to 100 of A-Z a-z 0-9 . _ -',
      },
      description:
        'The source of notices about failing destinations (docs/notices.md). Destinations that the catalog connects to this source get the notices. If the catalog does not have the source, Sluice makes no notices.',
    }),
    failingAfter: duration({
      default: 5 * MINUTE,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'How long a URL must fail, or a destination must need a backfill, before Sluice sends a notice.',
    }),
    window: duration({
      default: HOUR,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'Within this time, Sluice sends at most one notice of a kind about the same URL or destination. The counts of the next notice begin after the previous one.',
    }),
    deadLetters: integer({
      default: 10,
      min: 0,
      max: 1_000_000_000,
      description:
        'How many dead letters a destination must have within `notices.window` before Sluice sends a notice. 0: Sluice sends no such notice.',
    }),
    autoPause: durationOrOff({
      default: 0,
      ...autoPauseLimits,
      description:
        'How long all URLs of a destination must fail before Sluice pauses the destination. Choose several days, such as `120h`. The messages of a paused destination wait until somebody resumes it. The `autoPause` of a destination in the catalog takes precedence.',
    }),
    whileAutoPaused: choice({
      values: ['wait', 'dead-letter'],
      default: 'wait',
      description:
        'What becomes of the messages for a destination while Sluice has paused it. `wait`: they wait in its queue (topic `waiting`), and are delivered when it is resumed. `dead-letter`: each becomes a dead letter at once (`auto_paused`).',
    }),
    refusingAfter: durationOrOff({
      default: HOUR,
      min: SECOND,
      max: 7 * 24 * HOUR,
      description:
        'How long a URL must refuse everything, with answers such as 401 or 404 after which a message has failed for good, before Sluice sends a notice. `off`: Sluice sends no such notice.',
    }),
    pauseRefusing: boolean({
      default: false,
      description:
        'Whether a URL that refuses everything counts as failing for `notices.autoPause`. Sluice then pauses a destination whose URLs have all failed or refused everything for that time.',
    }),
    secretEnding: duration({
      default: 7 * 24 * HOUR,
      min: SECOND,
      max: 90 * 24 * HOUR,
      description:
        'How long before the end of a secret (`sharedSecretEndsAt` in the catalog) Sluice sends a notice about it.',
    }),
    paced: integer({
      default: 1_000,
      min: 0,
      max: 1_000_000_000,
      description:
        'If Sluice has delayed this many deliveries to a working destination within `notices.window`, because the destination is too slow, it sends a notice. 0: Sluice sends no such notice.',
    }),
  },
} as const
