import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import type { Destination } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Button, Choice } from '../parts/form.tsx'
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
    <Part title="Secret">
      <NotYet asked={asked.value} />
      {destination === undefined ? null : <Rotation destination={destination} endsAt={endsAt} />}
    </Part>
  )
}

function Rotation({ destination, endsAt }: { destination: Destination; endsAt: string | null }) {
  const hours = useSignal<(typeof ends)[number]['value']>('')
  const rotate = useAct(() =>
    api.rotateSecret(
      destination.id,
      hours.value === '' ? undefined : new Date(Date.now() + Number(hours.value) * 3_600_000).toISOString(),
    ),
  )
  const end = useAct(() => api.endOldSecret(destination.id))
  const isSigned = destination.sharedSecret !== undefined
  const hasTwo = destination.nextSharedSecret !== undefined
  return (
    <>
      <p>
        {hasTwo
          ? 'There are two secrets: the old one, and the new one beside it. End the old one once the endpoint accepts the new one.'
          : isSigned
            ? 'Requests are signed. A new secret stays beside the old one until that ends, so no request is refused.'
            : 'Requests are not signed yet.'}
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
              options={ends}
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
