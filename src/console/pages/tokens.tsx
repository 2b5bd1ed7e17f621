import { type Signal, useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { isInFile, known } from '../data/session.ts'
import type { Right, Scope, ListedToken } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Badge } from '../parts/badge.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { DialogButton } from '../parts/dialog-button.tsx'
import { Button, Choice, Field } from '../parts/form.tsx'
import { scopeText } from '../parts/frame.tsx'
import { InFile } from '../parts/in-file.tsx'
import { Page } from '../parts/page.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'
import { RevokeDialog } from '../parts/revoke-dialog.tsx'
import { ShownOnce } from '../parts/shown-once.tsx'
import { Ago, Time } from '../parts/time.tsx'

export function TokensPage() {
  const { asked } = useAsk('tokens', api.listTokens, 10_000)
  const page = asked.value.value
  return (
    <Page
      title="Tokens"
      aside={
        <DialogButton label="Make a token" tone="main" disabled={isInFile.value}>
          {(onClose) => <MakeDialog onClose={onClose} />}
        </DialogButton>
      }
    >
      <InFile title="The catalog is in a file, so tokens are made on the command line.">
        <code>sluice admin token create</code> makes a line for the file of tokens (admin.tokensFile).
      </InFile>
      <NotYet asked={asked.value} />
      {page === undefined ? null : <TokenTable tokens={page.tokens} />}
    </Page>
  )
}

function TokenTable({ tokens }: { tokens: readonly ListedToken[] }) {
  return (
    <div class="scroll" role="region" aria-label="Tokens" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Right</th>
            <th scope="col">Scope</th>
            <th scope="col">Ends</th>
            <th scope="col">Last seen here</th>
            <th scope="col">Made</th>
            <th scope="col">
              <span class="hidden">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => (
            <tr key={`${token.origin} ${token.name}`}>
              <th scope="row">{token.name}</th>
              <td>{token.right}</td>
              <td class="mono" data-name="scope">
                {scopeText(token.scope)}
              </td>
              <td data-name="ends">
                {token.hasEnded ? <Badge tone="quiet" word="ended" /> : null}{' '}
                {token.expiresAt === null ? 'never' : <Time at={token.expiresAt} />}
              </td>
              <td data-name="last seen here">
                <Ago at={token.lastUsedAt} />
              </td>
              <td data-name="made">
                {token.origin === 'file' ? (
                  'in the token file'
                ) : (
                  <>
                    <Time at={token.createdAt} /> by {token.createdBy}
                  </>
                )}
              </td>
              <td>
                {token.origin === 'file' ? null : (
                  <DialogButton label="Revoke" tone="danger">
                    {(onClose) => <RevokeToken token={token} onClose={onClose} />}
                  </DialogButton>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function RevokeToken({ token: { name }, onClose }: { token: ListedToken; onClose: () => void }) {
  return (
    <RevokeDialog what={name} holder={`token.${name}`} revoke={() => api.revokeToken(name)} onClose={onClose}>
      It is refused from now on, also on open connections. Tokens that were made with it stay.
    </RevokeDialog>
  )
}

const rights: readonly { readonly value: Right; readonly name: string }[] = [
  { value: 'read', name: 'read: look, change nothing' },
  { value: 'operate', name: 'operate: also replay, test, resume, retry, drop' },
  { value: 'admin', name: 'admin: also change destinations and make tokens' },
]
const days = [
  { value: '90', name: 'In 90 days' },
  { value: '1', name: 'In a day' },
  { value: '7', name: 'In a week' },
  { value: '365', name: 'In a year' },
  { value: '', name: 'Never' },
] as const

function MakeDialog({ onClose }: { onClose: () => void }) {
  const own = known.value.is === 'in' ? known.value.session : undefined
  const isScoped = own !== undefined && own.scope !== 'all'
  const name = useSignal(isScoped ? `${own.name}.` : '')
  const right = useSignal<Right>('read')
  const label = useSignal('')
  const destinations = useSignal('')
  const endsIn = useSignal<(typeof days)[number]['value']>('90')
  const typed = { name, right, label, destinations, endsIn }
  const make = useAct(() => api.createToken(tokenOf(typed)))
  if (make.done !== undefined)
    return <MadeDialog name={make.done.name} token={make.done.token} onClose={onClose} />
  return (
    <Dialog title="Make a token" onClose={onClose}>
      <Field
        label="Name"
        value={name.value}
        onInput={set(name)}
        isMono
        hint="Who it is for. Audit shows it."
      />
      <Choice label="Right" value={right.value} options={rights} onChange={set(right)} />
      <Field
        label="Only destinations with the label"
        value={label.value}
        onInput={set(label)}
        isMono
        placeholder="tenant=acme"
        hint={isScoped ? 'Empty: as your own token.' : 'Empty: all.'}
      />
      <Field
        label="Only these destinations"
        value={destinations.value}
        onInput={set(destinations)}
        isMono
        hint="Ids, separated by commas. Empty: all."
      />
      <Choice label="Ends" value={endsIn.value} options={days} onChange={set(endsIn)} />
      <ProblemNote problem={make.problem} />
      <footer>
        <Button
          tone="main"
          isBusy={make.isBusy}
          disabled={name.value.trim() === ''}
          onClick={() => void make.run()}
        >
          Make it
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}

type MadeProps = { name: string; token: string; onClose: () => void }

function MadeDialog({ name, token, onClose }: MadeProps) {
  return (
    <Dialog title={`Token ${name}`} onClose={onClose}>
      <ShownOnce name="The token" value={token} />
      <footer>
        <Button onClick={onClose}>Close</Button>
      </footer>
    </Dialog>
  )
}

/** Returns a function that sets a signal. */
function set<V extends string>(slot: { value: V }): (value: V) => void {
  return (value) => {
    slot.value = value
  }
}

type Typed = {
  name: Signal<string>
  right: Signal<Right>
  label: Signal<string>
  destinations: Signal<string>
  endsIn: Signal<(typeof days)[number]['value']>
}

function tokenOf({ name, right, label, destinations, endsIn }: Typed): api.NewToken {
  const ids = destinations.value.split(/[\s,]+/).filter((id) => id !== '')
  const parts = {
    ...(label.value.trim() === '' ? {} : { label: label.value.trim() }),
    ...(ids.length === 0 ? {} : { destinations: ids }),
  }
  const own = known.value.is === 'in' ? known.value.session.scope : 'all'
  const scope: Scope = Object.keys(parts).length === 0 ? own : parts
  const expiresAt =
    endsIn.value === '' ? null : new Date(Date.now() + Number(endsIn.value) * 86_400_000).toISOString()
  return { name: name.value.trim(), right: right.value, scope, expiresAt }
}
