import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import type { Answer } from '../data/answer.ts'
import { count, counted } from '../data/format.ts'
import { isInFile, may } from '../data/session.ts'
import type { DestinationHealth, HookTrial, Tested } from '../data/types.ts'
import { type Act, useAct } from '../parts/act.tsx'
import { Badge } from '../parts/badge.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Button, Choice } from '../parts/form.tsx'
import { InFile } from '../parts/in-file.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { ReplayDialog } from '../parts/replay-dialog.tsx'
import { Time } from '../parts/time.tsx'

type Open = 'test' | 'switch' | 'retry' | 'drop' | 'replay'

/** The buttons of a destination, as far as the session may press them. Each asks before it does anything. */
export function DestinationActions({ health }: { health: DestinationHealth }) {
  const open = useSignal<Open | undefined>(undefined)
  const show = (what: Open) => () => {
    open.value = what
  }
  const close = (): void => {
    open.value = undefined
  }
  const isOn = health.state === 'on'
  const mayReplay = may('operate', 'replay')
  const maySwitch = health.state === 'auto_paused' ? may('operate') : may('admin')
  return (
    <>
      {may('operate', 'test') ? <Button onClick={show('test')}>Send a test</Button> : null}
      {maySwitch ? <Button onClick={show('switch')}>{isOn ? 'Pause' : 'Resume'}</Button> : null}
      {mayReplay ? <Button onClick={show('retry')}>Try now</Button> : null}
      {mayReplay ? <Button onClick={show('replay')}>Replay</Button> : null}
      {may('operate') ? (
        <Button onClick={show('drop')} tone="danger">
          Drop
        </Button>
      ) : null}
      {open.value === 'test' ? <TestDialog health={health} onClose={close} /> : null}
      {open.value === 'switch' ? <SwitchDialog health={health} onClose={close} /> : null}
      {open.value === 'retry' ? <RetryDialog id={health.destination} onClose={close} /> : null}
      {open.value === 'drop' ? <DropDialog id={health.destination} onClose={close} /> : null}
      {open.value === 'replay' ? (
        <ReplayDialog selection={{ of: 'dead-letters', destination: health.destination }} onClose={close} />
      ) : null}
    </>
  )
}

type OneProps = { health: DestinationHealth; onClose: () => void }

function TestDialog({ health, onClose }: OneProps) {
  const hook = useSignal('')
  const test = useAct(() =>
    api.testDestination(health.destination, hook.value === '' ? undefined : hook.value),
  )
  return (
    <Dialog title="Send a test" onClose={onClose} isWide>
      <p>
        Sends one test message to the endpoint, as a worker would. The request has the header{' '}
        <code>X-Sluice-Test: true</code>.
      </p>
      {health.hooks.length > 1 ? (
        <Choice
          label="URL"
          value={hook.value}
          options={[
            { value: '', name: 'All' },
            ...health.hooks.map(({ id, origin }) => ({ value: id, name: `${origin} (${id})` })),
          ]}
          onChange={(value) => {
            hook.value = value
          }}
        />
      ) : null}
      <ProblemNote problem={test.problem} />
      {test.done === undefined ? null : <TestResult tested={test.done} />}
      <footer>
        <Button onClick={() => void test.run()} tone="main" isBusy={test.isBusy}>
          {test.done === undefined ? 'Send' : 'Send again'}
        </Button>
        <Button onClick={onClose}>Close</Button>
      </footer>
    </Dialog>
  )
}

function TestResult({ tested }: { tested: Tested }) {
  return (
    <div role="status">
      {tested.hooks.map((hook) => (
        <section key={hook.hook} class="note" data-tone={hook.verdict === 'delivered' ? 'good' : 'bad'}>
          <p>
            <Badge
              tone={hook.verdict === 'delivered' ? 'good' : 'bad'}
              word={hook.verdict === 'delivered' ? 'accepted' : 'not accepted'}
            />{' '}
            <span class="mono">{hook.origin}</span> {hook.outcome}, {count(hook.durationMs)} ms
          </p>
          <LoginStep hook={hook} />
          {hook.advice === null ? null : <p>{hook.advice}</p>}
          {hook.answer === null ? null : <pre>{hook.answer}</pre>}
        </section>
      ))}
      {tested.notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </div>
  )
}

/** How the request has logged in, before it was sent. */
function LoginStep({ hook: { login, certificateEndsAt } }: { hook: HookTrial }) {
  return (
    <>
      {login === null ? null : <p>{loginText(login)}</p>}
      {certificateEndsAt === null ? null : (
        <p>
          The client certificate of this URL ends <Time at={certificateEndsAt} />.
        </p>
      )}
    </>
  )
}

function loginText({ kind, tokenOrigin, problem, durationMs }: NonNullable<HookTrial['login']>): string {
  if (kind === 'basic') return 'Logged in with a user name and a password.'
  if (problem !== null) return `No token came from ${tokenOrigin ?? ''}, so nothing was sent: ${problem}.`
  return `Logged in with a token, which came from ${tokenOrigin ?? ''} after ${count(durationMs)} ms.`
}

/** Pauses a destination, or lets it go on, whoever has paused it. */
async function switchTo(state: 'on' | 'paused', health: DestinationHealth): Promise<Answer<unknown>> {
  if (health.state === 'auto_paused') return api.resumeDestination(health.destination)
  const present = await api.readDestination(health.destination)
  if (!present.ok) return present
  const change = { version: present.version, isDryRun: false }
  return api.patchDestination(health.destination, { state }, change)
}

function SwitchDialog({ health, onClose }: OneProps) {
  // The page asks for the state again afterwards. The dialog still speaks of what was asked for.
  const isOn = useSignal(health.state === 'on').value
  const act = useAct(() => switchTo(isOn ? 'paused' : 'on', health))
  if (isInFile.value && health.state !== 'auto_paused')
    return (
      <Dialog title={isOn ? 'Pause' : 'Resume'} onClose={onClose}>
        <InFile>
          Set <code>state</code> of it to <code>{isOn ? 'paused' : 'on'}</code> in the file.
        </InFile>
        <footer>
          <Button onClick={onClose}>Close</Button>
        </footer>
      </Dialog>
    )
  return (
    <Ask
      title={isOn ? 'Pause' : 'Resume'}
      act={act}
      isDanger={false}
      verb={isOn ? 'Pause' : 'Resume'}
      done={`${health.destination} is ${isOn ? 'paused' : 'on'}. Workers know within seconds.`}
      onClose={onClose}
    >
      {isOn
        ? 'Its messages wait in its queue, for up to 30 days. They are delivered in order when it is on again.'
        : 'Sluice sends to it again within seconds, first what has waited.'}
    </Ask>
  )
}

function RetryDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const act = useAct(() => api.retryNow(id, {}))
  return (
    <Ask title="Try now" act={act} verb="Try now" isDanger={false} onClose={onClose}>
      Workers try what waits after failed tries, without waiting for its time. They begin with a few messages,
      and go on as these arrive. If too many fail, the rest keeps its time.
    </Ask>
  )
}

function DropDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const preview = useAct(() => api.dropWaiting(id, { dryRun: true }), { isReading: true })
  const act = useAct(() => api.dropWaiting(id, { dryRun: false }))
  const waiting = preview.done?.waiting
  if (preview.done === undefined)
    return (
      <Dialog title="Drop what waits" onClose={onClose}>
        <p>
          Makes dead letters of all messages of this destination that wait now. A replay can still send them.
        </p>
        <ProblemNote problem={preview.problem} />
        <footer>
          <Button onClick={() => void preview.run()} isBusy={preview.isBusy} tone="main">
            Count them first
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </footer>
      </Dialog>
    )
  return (
    <Ask
      title="Drop what waits"
      act={act}
      verb={waiting === null || waiting === undefined ? 'Drop all of it' : `Drop ${count(waiting)}`}
      isDanger
      onClose={onClose}
    >
      {waiting === null || waiting === undefined
        ? 'How many messages wait is not known.'
        : `${counted(waiting, 'message')} ${waiting === 1 ? 'waits for its' : 'wait for their'} turn.`}{' '}
      What waits for its next try on the retry topics is dropped too, and nobody counts it by destination. Are
      you sure?
    </Ask>
  )
}

type AskProps = {
  title: string
  act: Act<[], unknown>
  verb: string
  isDanger: boolean
  /** What it says when it is done. */
  done?: string
  onClose: () => void
  children: preact.ComponentChildren
}

/** Asks, does, and says that it is done. */
function Ask({
  title,
  act,
  verb,
  isDanger,
  done = 'Done. Workers know within seconds.',
  onClose,
  children,
}: AskProps) {
  const isDone = act.done !== undefined
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <ProblemNote problem={act.problem} />
      <p role="status">{isDone ? done : ''}</p>
      <footer>
        {isDone ? null : (
          <Button onClick={() => void act.run()} isBusy={act.isBusy} tone={isDanger ? 'danger' : 'main'}>
            {verb}
          </Button>
        )}
        <Button onClick={onClose}>{isDone ? 'Close' : 'Cancel'}</Button>
      </footer>
    </Dialog>
  )
}
