import { duration, integer, isPlainUrl, optionalText, text, SECOND, MINUTE } from './key.ts'

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
  url: optionalText({
    shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
    description:
      'The URL of the admin API that `sluice listen` and `sluice trigger` ask. If it is not set, they ask `admin.host` at `admin.port`.',
  }),
  token: optionalText({
    isSecret: true,
    shape: { accepts: (given) => /^[\x21-\x7e]{1,200}$/.test(given), expected: 'a token of the admin API' },
    description: 'The token with which `sluice listen` and `sluice trigger` ask the admin API.',
  }),
  tokenFile: optionalText({
    description: 'A file that holds the token of `admin.token`.',
  }),
  requestTimeout: duration({
    default: 30 * SECOND,
    min: SECOND,
    max: 10 * MINUTE,
    description: 'How long a client may take to send a whole request to the admin API.',
  }),
}
