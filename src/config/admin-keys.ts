import { duration, integer, optionalText, text, SECOND, MINUTE } from './key.ts'

export const adminKeys = {
  host: text({
    default: '127.0.0.1',
    description:
      'The address that `sluice admin` listens on. The API uses plain HTTP. Before you open it to other machines, put a proxy with TLS in front of it.',
  }),
  port: integer({
    default: 9420,
    min: 0,
    max: 65_535,
    description: 'The port that `sluice admin` listens on. 0 picks a free port.',
  }),
  tokensFile: optionalText({
    description:
      'The file of the tokens that may use the admin API. Each line has a name, a right (read, operate or admin) and a hash, as `sluice admin token create` prints it. Read again when it changes. Without it `sluice admin` does not start.',
  }),
  requestTimeout: duration({
    default: 30 * SECOND,
    min: SECOND,
    max: 10 * MINUTE,
    description: 'How long a client may take to send a whole request to the admin API.',
  }),
}
