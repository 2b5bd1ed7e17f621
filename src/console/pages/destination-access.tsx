import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { now } from '../data/clock.ts'
import { millis } from '../data/format.ts'
import { gatewayUrl } from '../data/gateway.ts'
import type { DestinationHealth, HookState, SigningKey } from '../data/types.ts'
import { Badge } from '../parts/badge.tsx'
import { Copied } from '../parts/copied.tsx'
import { GatewayField } from '../parts/gateway-field.tsx'
import { Part } from '../parts/page.tsx'
import { Empty, NotYet } from '../parts/problem.tsx'
import { Ago, Time } from '../parts/time.tsx'

/** How requests log in at each URL, and the public keys with which their receivers verify them. */
export function DestinationAccess({ health }: { health: DestinationHealth }) {
  const { destination: id, hooks, timeoutMs } = health
  const { asked } = useAsk(`keys-${id}`, (reading) => api.readSigningKeys(id, reading))
  const keys = asked.value.value?.keys
  return (
    <>
      <Part title="Logins">
        <ul class="rows" aria-label="Logins of the URLs">
          {hooks.map((hook) => (
            <LoginRow key={hook.id} hook={hook} />
          ))}
        </ul>
        <p class="quiet">
          {timeoutMs === null
            ? 'An answer may take as long as the installation is set.'
            : `The head of an answer has to come within ${millis(timeoutMs)}.`}
        </p>
      </Part>
      <Part title="Public keys">
        <NotYet asked={asked.value} />
        {keys === undefined ? null : keys.length === 0 ? (
          <Empty title="Requests are not signed with a key of Ed25519.">
            With one, whoever gets the requests verifies them by a public key, and shares no secret with you.
          </Empty>
        ) : (
          <Keys id={id} keys={keys} />
        )}
      </Part>
    </>
  )
}

function LoginRow({ hook }: { hook: HookState }) {
  return (
    <li>
      <LoginBadge hook={hook} />
      <span class="mono">{hook.origin}</span>
      <span class="quiet mono">{hook.id}</span>
      <span class="grow">
        <LoginText hook={hook} />
        {hook.certificateEndsAt === null ? null : <Certificate endsAt={hook.certificateEndsAt} />}
        {hook.hasOwnAuthorities ? ' Only authorities of its own are trusted.' : null}
      </span>
    </li>
  )
}

function LoginBadge({ hook: { login, failing } }: { hook: HookState }) {
  if (login === null) return <Badge tone="quiet" word="no login" />
  if (typeof failing?.loginProblem === 'string') return <Badge tone="bad" word="login fails" />
  return <Badge tone="good" word={login === 'basic' ? 'Basic' : 'OAuth 2'} />
}

function LoginText({ hook: { login, tokenOrigin, failing } }: { hook: HookState }) {
  if (login === null) return <>Requests have only the headers of its settings.</>
  if (login === 'basic') return <>Requests have a user name and a password.</>
  const from = (
    <>
      Requests have a token of <span class="mono">{tokenOrigin}</span>.
    </>
  )
  if (failing === null || failing.loginProblem === null)
    return <>{from} Each worker renews it before it ends, and none says that this fails.</>
  return (
    <>
      {from} Since <Ago at={failing.since} /> none can be had: {failing.loginProblem}. Messages wait, and no
      try counts.
    </>
  )
}

const soonMs = 30 * 86_400_000

function Certificate({ endsAt }: { endsAt: string }) {
  const leftMs = Date.parse(endsAt) - now.value
  return (
    <>
      {' '}
      Its client certificate {leftMs > 0 ? 'ends' : 'has ended'} <Ago at={endsAt} /> (<Time at={endsAt} />
      ).{' '}
      {leftMs > soonMs ? null : (
        <Badge tone={leftMs > 0 ? 'warn' : 'bad'} word={leftMs > 0 ? 'renew it' : 'ended'} />
      )}
    </>
  )
}

function Keys({ id, keys }: { id: string; keys: readonly SigningKey[] }) {
  return (
    <>
      <p>
        Requests are signed with{' '}
        {keys.length === 1 ? 'this key' : `each of these ${keys.length} keys, until the old one ends`}.
        Whoever gets them reads the public keys from the gateway, without a login:
      </p>
      <GatewayField />
      <Copied text={`${gatewayUrl.value.replace(/\/+$/, '')}/v1/signing-keys/${encodeURIComponent(id)}`} />
      <ul class="rows" aria-label="Public keys">
        {keys.map(({ kid, whpk }) => (
          <li key={kid}>
            <span class="mono grow">{whpk}</span>
            <span class="quiet mono">{kid}</span>
          </li>
        ))}
      </ul>
    </>
  )
}
