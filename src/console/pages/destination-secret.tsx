import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import type { Destination } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Button, Choice } from '../parts/form.tsx'
import { Link } from '../parts/link.tsx'
import { Part } from '../parts/page.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'
import { ShownOnce } from '../parts/shown-once.tsx'
import { Time } from '../parts/time.tsx'

const ends = [
  { value: '', name: 'When I end it' },
  { value: '1', name: 'In an hour' },
  { value: '24', name: 'In a day' },
  { value: '168', name: 'In a week' },
] as const

/** The secret with which requests are signed: a new one beside the old one, then the end of the old one. */
export function DestinationSecret({ id, endsAt }: { id: string; endsAt: string | null }) {
  const { asked } = useAsk(`secret-${id}`, (reading) => api.readDestination(id, reading))
  const destination = asked.value.value?.destination
  return (
    <>
      <Part title="Secret">
        <NotYet asked={asked.value} />
        {destination === undefined ? null : <Rotation destination={destination} endsAt={endsAt} />}
      </Part>
      {destination === undefined ? null : (
        <Part title="Key of Ed25519">
          <KeyRotation id={id} keys={destination.signing?.ed25519?.length ?? 0} />
        </Part>
      )}
    </>
  )
}

/** The key by which receivers verify requests without a secret: nobody sees it, only its public key. */
function KeyRotation({ id, keys }: { id: string; keys: number }) {
  const rotate = useAct(() => api.rotateSecret(id, 'key', undefined))
  const end = useAct(() => api.endOldSecret(id, 'key'))
  const publicKey = rotate.done?.publicKey
  return (
    <>
      <p>
        {keys === 0
          ? 'Requests are not signed with such a key. With one, receivers verify by a public key, which is no secret.'
          : keys === 1
            ? 'Requests are signed with a key. A new one stays beside it until you end the old one.'
            : 'Requests are signed with the old and the new key. End the old one once all receivers know the new public key.'}{' '}
        <Link to="destination" params={{ id, view: 'access' }}>
          Public keys
        </Link>
      </p>
      <ProblemNote problem={rotate.problem ?? end.problem} />
      <p role="status">
        {typeof publicKey === 'string' ? (
          <>
            The new public key is <span class="mono">{publicKey}</span>.
          </>
        ) : end.done === undefined ? (
          ''
        ) : (
          'The old key has ended.'
        )}
      </p>
      {keys > 1 ? (
        <Button onClick={() => void end.run()} isBusy={end.isBusy} tone="danger">
          End the old key
        </Button>
      ) : (
        <Button onClick={() => void rotate.run()} isBusy={rotate.isBusy}>
          {keys === 0 ? 'Make a key' : 'Make a new key'}
        </Button>
      )}
    </>
  )
}

function Rotation({ destination, endsAt }: { destination: Destination; endsAt: string | null }) {
  const isStandard = destination.signing?.standardWebhooks === true
  // `X-Signature` has one secret at a time, so a time has to say when the new one takes over.
  const offered = isStandard ? ends : ends.filter(({ value }) => value !== '')
  const hours = useSignal<(typeof ends)[number]['value']>(offered[0]?.value ?? '')
  const isSigned = destination.sharedSecret !== undefined
  const rotate = useAct(() =>
    api.rotateSecret(
      destination.id,
      'secret',
      !isSigned || hours.value === ''
        ? undefined
        : new Date(Date.now() + Number(hours.value) * 3_600_000).toISOString(),
    ),
  )
  const end = useAct(() => api.endOldSecret(destination.id, 'secret'))
  const hasTwo = destination.nextSharedSecret !== undefined
  return (
    <>
      <p>
        {stateOf({ isSigned, hasTwo, isStandard })}
        {endsAt === null ? null : (
          <>
            {' '}
            The old secret ends by itself: <Time at={endsAt} />.
          </>
        )}
      </p>
      <ProblemNote problem={rotate.problem ?? end.problem} />
      {rotate.done?.secret === null || rotate.done === undefined ? null : (
        <ShownOnce name="The new secret" value={rotate.done.secret} />
      )}
      <p role="status">{end.done === undefined ? '' : 'The old secret has ended.'}</p>
      {hasTwo ? (
        <Button onClick={() => void end.run()} isBusy={end.isBusy} tone="danger">
          End the old secret
        </Button>
      ) : (
        <>
          {isSigned ? (
            <Choice
              label="The old secret ends"
              value={hours.value}
              options={offered}
              onChange={(value) => {
                hours.value = value
              }}
            />
          ) : null}
          <Button onClick={() => void rotate.run()} isBusy={rotate.isBusy} tone="main">
            {isSigned ? 'Make a new secret' : 'Make a secret'}
          </Button>
        </>
      )}
    </>
  )
}

function stateOf(of: { isSigned: boolean; hasTwo: boolean; isStandard: boolean }): string {
  if (of.hasTwo)
    return 'There are two secrets: the old one, and the new one beside it. End the old one once the endpoint accepts the new one.'
  if (!of.isSigned) return 'Requests are not signed yet.'
  return of.isStandard
    ? 'Requests are signed. A new secret stays beside the old one until that ends, so no request is refused.'
    : 'Requests are signed. X-Signature uses the old secret until it ends, then the new one. Let the endpoint accept both before that.'
}
