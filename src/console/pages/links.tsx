import { type Signal, useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { count } from '../data/format.ts'
import { isInFile, may, seesContent } from '../data/session.ts'
import type { Grant, ListedLink } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { DialogButton } from '../parts/dialog-button.tsx'
import { Button, Check, Choice, Field } from '../parts/form.tsx'
import { InFile } from '../parts/in-file.tsx'
import { Page } from '../parts/page.tsx'
import { Empty, NotYet, ProblemNote } from '../parts/problem.tsx'
import { RevokeDialog } from '../parts/revoke-dialog.tsx'
import { ShownOnce } from '../parts/shown-once.tsx'
import { Time } from '../parts/time.tsx'

/** Links by which customers see their own in this console. */
export function LinksPage() {
  const { asked } = useAsk('links', api.listLinks, 10_000)
  const links = asked.value.value?.links
  return (
    <Page
      title="Customers' links"
      aside={
        <DialogButton label="Make a link" tone="main" disabled={isInFile.value}>
          {(onClose) => <MakeDialog onClose={onClose} />}
        </DialogButton>
      }
    >
      <InFile title="The catalog is in a file, so links can not be kept.">
        A link has to outlive a restart.
      </InFile>
      <NotYet asked={asked.value} />
      {links === undefined ? null : links.length === 0 ? (
        <Empty title="There is no link.">
          Whoever has a link signs in to this console, sees what has one label, and does what you allow.
        </Empty>
      ) : (
        <LinkTable links={links} />
      )}
    </Page>
  )
}

function LinkTable({ links }: { links: readonly ListedLink[] }) {
  return (
    <div class="scroll" role="region" aria-label="Links" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">For</th>
            <th scope="col">Label</th>
            <th scope="col">May</th>
            <th scope="col">Ends</th>
            <th scope="col">Made</th>
            <th scope="col">
              <span class="hidden">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {links.map((link) => (
            <LinkRow key={link.id} link={link} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function LinkRow({ link }: { link: ListedLink }) {
  return (
    <tr>
      <th scope="row">{link.name}</th>
      <td class="mono">{link.label}</td>
      <td data-name="may">{link.rights.map((right) => right.replaceAll('_', ' ')).join(', ')}</td>
      <td class="when" data-name="ends">
        <Time at={link.expiresAt} />
      </td>
      <td data-name="made">
        <Time at={link.createdAt} /> by {link.createdBy}
      </td>
      <td>
        <DialogButton label="Revoke" tone="danger">
          {(onClose) => (
            <RevokeDialog
              what={`${link.name}'s link`}
              holder={link.id}
              revoke={() => api.revokeLink(link.id)}
              onClose={onClose}
            >
              It signs nobody in from now on.
            </RevokeDialog>
          )}
        </DialogButton>
      </td>
    </tr>
  )
}

type Given = { readonly grant: Grant; readonly name: string; readonly hint?: string }

const grants: readonly Given[] = [
  { grant: 'see', name: 'See destinations and what became of messages' },
  {
    grant: 'answers',
    name: 'See what endpoints have answered',
    hint: 'To failed requests, if attempts.answers is on. An answer may repeat parts of a message.',
  },
  { grant: 'replay', name: 'Send again, and try now' },
  { grant: 'test', name: 'Send test messages' },
  { grant: 'edit_url', name: 'Change URLs' },
  { grant: 'rotate', name: 'Replace secrets' },
]

const days = [
  { value: '7', name: 'In a week' },
  { value: '1', name: 'In a day' },
  { value: '30', name: 'In 30 days' },
  { value: '90', name: 'In 90 days' },
] as const

function MakeDialog({ onClose }: { onClose: () => void }) {
  const name = useSignal('')
  const label = useSignal('')
  const chosen = useSignal<readonly Grant[]>(['see'])
  const endsIn = useSignal<(typeof days)[number]['value']>('7')
  const make = useAct(() =>
    api.createLink({
      name: name.value.trim(),
      label: label.value.trim(),
      rights: [...chosen.value],
      expiresAt: new Date(Date.now() + Number(endsIn.value) * 86_400_000).toISOString(),
    }),
  )
  if (make.done !== undefined) return <MadeDialog path={make.done.link} onClose={onClose} />
  return (
    <Dialog title="Make a link" onClose={onClose}>
      <Field
        label="For"
        value={name.value}
        isMono
        hint="Audit shows it."
        onInput={(value) => {
          name.value = value
        }}
      />
      <Field
        label="Shows what has the label"
        value={label.value}
        isMono
        placeholder="tenant=acme"
        hint="Destinations get labels in their settings."
        onInput={(value) => {
          label.value = value
        }}
      />
      {/^[^=]+=.+$/.test(label.value.trim()) ? <Shown label={label.value.trim()} /> : null}
      <GrantChecks chosen={chosen} />
      <Choice
        label="Ends"
        value={endsIn.value}
        options={days}
        onChange={(value) => {
          endsIn.value = value
        }}
      />
      <ProblemNote problem={make.problem} />
      <footer>
        <Button
          tone="main"
          isBusy={make.isBusy}
          disabled={name.value.trim() === '' || label.value.trim() === '' || chosen.value.length === 0}
          onClick={() => void make.run()}
        >
          Make it
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}

/** Says which destinations a label shows, so that nobody gives a link to nothing, or to too much. */
function Shown({ label }: { label: string }) {
  const { asked } = useAsk(`labelled-${label}`, (reading) =>
    api.listDestinations({ label, limit: 5 }, reading),
  )
  const list = asked.value.value
  if (list === undefined) return null
  const names = list.destinations.map(({ name }) => name)
  return (
    <p role="status" class="quiet">
      {list.total === 0
        ? 'No destination has this label yet.'
        : `They see ${count(list.total)}: ${names.join(', ')}${list.total > names.length ? ', …' : ''}`}
    </p>
  )
}

function GrantChecks({ chosen }: { chosen: Signal<readonly Grant[]> }) {
  return (
    <>
      {grants.filter(isGivable).map(({ grant, name, hint }) => (
        <Check
          key={grant}
          label={name}
          {...(hint === undefined ? {} : { hint })}
          value={chosen.value.includes(grant)}
          onChange={(isOn) => {
            const others = chosen.value.filter((one) => one !== grant)
            chosen.value = isOn ? [...others, grant] : others
          }}
        />
      ))}
      <p class="hint">No link shows what messages contain.</p>
    </>
  )
}

/** Tells whether the session has what it takes to give a grant. */
function isGivable({ grant }: Given): boolean {
  if (grant === 'answers') return seesContent.value
  return (grant !== 'edit_url' && grant !== 'rotate') || may('admin')
}

function MadeDialog({ path, onClose }: { path: string; onClose: () => void }) {
  return (
    <Dialog title="The link" onClose={onClose}>
      <ShownOnce name="The link" value={new URL(path, location.href).href} />
      <p>
        To see what they see, open it in a private window. In this one, it would take the place of your own
        session.
      </p>
      <footer>
        <Button onClick={onClose}>Close</Button>
      </footer>
    </Dialog>
  )
}
