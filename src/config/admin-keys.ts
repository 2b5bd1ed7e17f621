import {
  choice,
  cidrs,
  duration,
  integer,
  isPlainUrl,
  optionalText,
  text,
  texts,
  HOUR,
  MINUTE,
  SECOND,
} from './key.ts'

/** Without TLS, whoever is between could sign in as anybody. */
function isIssuer(given: string): boolean {
  if (!URL.canParse(given)) return false
  const { protocol, hostname, search, hash, username } = new URL(given)
  const isPlain = protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(hostname)
  return (protocol === 'https:' || isPlain) && search === '' && hash === '' && username === ''
}

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
      'The URL of the admin API that `sluice listen`, `sluice trigger` and `sluice console` ask. If it is not set, they ask `admin.host` at `admin.port`.',
  }),
  token: optionalText({
    isSecret: true,
    shape: { accepts: (given) => /^[\x21-\x7e]{1,200}$/.test(given), expected: 'a token of the admin API' },
    description:
      'The token with which `sluice listen`, `sluice trigger` and `sluice console` ask the admin API.',
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
  publicUrl: optionalText({
    shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
    description:
      'The URL by which browsers reach `sluice admin` through a proxy, such as `https://ops.example.com/sluice`. Its path stands before all paths. The proxy may pass it on or leave it out. With `https`, the cookie of a session is sent only over TLS. Links to the console begin with it.',
  }),
  trustedProxies: cidrs({
    default: [],
    description:
      'Address ranges of the proxies in front of `sluice admin`. `sluice admin` trusts their headers `X-Forwarded-For` and `X-Forwarded-Proto`. It limits wrong tokens by the last address in `X-Forwarded-For` that is not in one of these ranges.',
  }),
  sessionIdleTimeout: duration({
    default: HOUR,
    min: MINUTE,
    max: 168 * HOUR,
    description: 'After how long without use a session of the console ends. A page that is open uses it.',
  }),
  sessionTimeout: duration({
    default: 12 * HOUR,
    min: MINUTE,
    max: 720 * HOUR,
    description: 'How long after the sign-in a session of the console ends, however much it is used.',
  }),
  oidcIssuer: optionalText({
    shape: { accepts: isIssuer, expected: 'https://host/path, or http:// on this machine' },
    description:
      'The issuer of the OpenID provider by which people sign in to the console, as its `/.well-known/openid-configuration` has it. It needs `admin.publicUrl`, below which the provider sends browsers back to `/console/oidc/callback`. If it is not set, people sign in by token or by link.',
  }),
  oidcClientId: optionalText({
    description: 'The id of the client that the provider has for `sluice admin`.',
  }),
  oidcClientSecretFile: optionalText({
    description:
      'The file of the secret of this client. It is read at each sign-in. If it is not set, the client is public, and only PKCE protects it.',
  }),
  oidcScopes: text({
    default: 'openid email profile',
    description: 'What is asked of the provider, as words with spaces between them. `openid` is needed.',
  }),
  oidcNameClaim: text({
    default: 'email',
    description:
      'The claim by which the audit trail names people. If it is missing, or if an e-mail address is not verified, they are named by `sub`.',
  }),
  oidcClaim: text({
    default: 'groups',
    description:
      'The claim that says what somebody may do: a text, or a list of texts, in the ID token or in the answer about the user.',
  }),
  oidcRights: texts({
    default: [],
    item: {
      accepts: (given) => /^.{1,200}: +(read|operate|admin)( +\S+){0,2}$/.test(given),
      expected: 'VALUE: RIGHT, with content, no-content or KEY=VALUE after it',
    },
    description:
      'What people may do by the values of `admin.oidcClaim`, such as `sluice-admins: admin,support: read content,acme: operate tenant=acme`. The right is `read`, `operate` or `admin`. With a label, it is for the destinations that have the label. The first value that somebody has counts.',
  }),
  consoleName: optionalText({
    shape: { accepts: (given) => /^[^\p{Cc}]{1,60}$/u.test(given), expected: 'up to 60 characters' },
    description: 'The name that the console shows in place of Sluice.',
  }),
  consoleAccent: optionalText({
    shape: { accepts: (given) => /^#[0-9a-f]{6}$/i.test(given), expected: 'a colour such as #0a7d55' },
    description: 'The accent colour of the console.',
  }),
  consoleTheme: choice({
    default: 'system',
    values: ['system', 'light', 'dark'],
    description:
      'Whether the console is light or dark, for who has chosen nothing. `system`: as the system of who looks at it.',
  }),
  consoleLogo: optionalText({
    description: 'The file of the logo that the console shows, .svg or .png, at most 100 KiB.',
  }),
  liveViews: integer({
    default: 200,
    min: 0,
    max: 10_000,
    description:
      'The most live views of the console at the same time, in each process of `sluice admin`. All who see one label have a quarter of them at most, so that others can look too.',
  }),
  liveViewsOfSession: integer({
    default: 8,
    min: 1,
    max: 1_000,
    description: 'The most live views of one session, or of one token, at the same time.',
  }),
}
