import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { count } from '../data/format.ts'
import { go, urlOf } from '../data/route.ts'
import { isForAll, isInFile, may } from '../data/session.ts'
import type { ListedSource } from '../data/types.ts'
import { useAct } from '../parts/act.tsx'
import { Badge } from '../parts/badge.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { DialogButton } from '../parts/dialog-button.tsx'
import { Button, Field } from '../parts/form.tsx'
import { InFile } from '../parts/in-file.tsx'
import { Link } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { Empty, NotYet, ProblemNote } from '../parts/problem.tsx'

export function SourcesPage() {
  const { asked } = useAsk('sources', api.listSources, 30_000)
  const list = asked.value.value?.sources
  const mayAdd = may('admin') && isForAll.value
  return (
    <Page
      title="Sources"
      aside={
        mayAdd ? (
          <DialogButton label="Add a source" tone="main" disabled={isInFile.value}>
            {(onClose) => <NewSource onClose={onClose} />}
          </DialogButton>
        ) : undefined
      }
    >
      <InFile />
      <NotYet asked={asked.value} />
      {list === undefined ? null : list.length === 0 ? (
        <NoSource mayAdd={mayAdd} />
      ) : (
        <SourceTable list={list} />
      )}
    </Page>
  )
}

function NoSource({ mayAdd }: { mayAdd: boolean }) {
  if (!isForAll.value)
    return (
      <Empty title="No source is among what you see.">
        Your destinations may get messages of sources that others manage.
      </Empty>
    )
  return (
    <Empty title="There are no sources yet.">
      A source has the key with which your services send messages.{' '}
      {!mayAdd
        ? 'Whoever has the right admin adds them.'
        : isInFile.value
          ? 'The file of the catalog has none.'
          : 'Add the first one above.'}
    </Empty>
  )
}

function SourceTable({ list }: { list: readonly ListedSource[] }) {
  return (
    <div class="scroll" role="region" aria-label="Sources" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col">Kind</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Destinations
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map(({ id, name, kind, enabled, destinations }) => (
            <tr key={id}>
              <th scope="row">
                <Link to="source" params={{ id }} isRow>
                  {name}
                </Link>{' '}
                {name === id ? null : <span class="quiet mono">{id}</span>}
              </th>
              <td>{kind}</td>
              <td>
                <Badge tone={enabled ? 'good' : 'quiet'} word={enabled ? 'on' : 'off'} />
              </td>
              <td class="number" data-name="destinations">
                {count(destinations)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function NewSource({ onClose }: { onClose: () => void }) {
  const id = useSignal('')
  const name = useSignal('')
  const add = useAct(
    () =>
      api.putSource(
        {
          id: id.value.trim(),
          ...(name.value.trim() === '' ? {} : { name: name.value.trim() }),
          writeKeys: [newKey()],
        },
        { version: undefined, isDryRun: false },
      ),
    { isReading: true },
  )
  return (
    <Dialog title="Add a source" onClose={onClose}>
      <p>It gets a new write key, which its page shows.</p>
      <Field
        label="Id"
        value={id.value}
        isMono
        onInput={(value) => {
          id.value = value
        }}
      />
      <Field
        label="Name"
        value={name.value}
        hint="For people. Empty: the id."
        onInput={(value) => {
          name.value = value
        }}
      />
      <ProblemNote problem={add.problem} />
      <footer>
        <Button
          tone="main"
          isBusy={add.isBusy}
          disabled={id.value.trim() === ''}
          onClick={() =>
            void add.run().then((answer) => {
              if (answer.ok) go(urlOf('source', { id: id.value.trim() }))
            })
          }
        >
          Add
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </footer>
    </Dialog>
  )
}

/** A write key of 96 random bits, as the command line makes them. */
function newKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(12))
  return `wk_${btoa(String.fromCharCode(...random))
    .replaceAll('+', '-')
    .replaceAll('/', '_')}`
}
