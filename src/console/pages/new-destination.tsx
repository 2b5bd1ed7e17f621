import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { destinationOf, draftOf, noDestination } from '../editor/draft.ts'
import { go, urlOf } from '../data/route.ts'
import { isInFile, known } from '../data/session.ts'
import { noteStored } from '../data/stored.ts'
import { useAct } from '../parts/act.tsx'
import { DestinationForm } from '../editor/destination-form.tsx'
import { InFile } from '../parts/in-file.tsx'
import { Page } from '../parts/page.tsx'
import { ProblemNote } from '../parts/problem.tsx'

export function NewDestinationPage() {
  return (
    <Page title="Add a destination">
      <InFile />
      {isInFile.value ? null : <NewDestination />}
    </Page>
  )
}

function NewDestination() {
  const { asked } = useAsk('sources', api.listSources)
  const sources = (asked.value.value?.sources ?? []).map(({ id }) => id)
  const typed = useSignal<ReturnType<typeof draftOf> | undefined>(undefined)
  const hasChosenSources = useSignal(false)
  const first = firstDraft(sources)
  const present = typed.value ?? first
  // The sources may come when somebody is typing already.
  const draft = hasChosenSources.value ? present : { ...present, sources: first.sources }
  const add = useAct(
    () => api.putDestination(destinationOf(draft), { version: undefined, isDryRun: false }),
    { isReading: true },
  )
  const submit = async (): Promise<void> => {
    const answer = await add.run()
    if (!answer.ok) return
    noteStored(draft.id.trim())
    go(urlOf('destination', { id: draft.id.trim() }))
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <DestinationForm
        draft={draft}
        isNew
        sources={sources}
        onChange={(next) => {
          if (next.sources !== draft.sources) hasChosenSources.value = true
          typed.value = next
        }}
      />
      <p class="hint">
        Requests are not signed at first. Once it is added, make a secret on its page, under Secret.
      </p>
      <ProblemNote
        problem={
          add.problem?.status === 412
            ? { ...add.problem, detail: `There is a destination ${draft.id} already. Choose another id.` }
            : add.problem
        }
      />
      <button type="submit" data-tone="main" disabled={add.isBusy}>
        Add
      </button>
    </form>
  )
}

/** A destination gets the only source there is, and the label of a session that may make no others. */
function firstDraft(sources: readonly string[]) {
  const now = known.value
  const scope = now.is === 'in' ? now.session.scope : 'all'
  const label = scope === 'all' ? undefined : scope.label
  const [key = '', value = ''] = label?.split('=') ?? []
  return {
    ...draftOf(noDestination),
    id: label === undefined ? '' : `${value}.`,
    labels: label === undefined ? '' : `${key}=${value}`,
    sources: sources.length === 1 ? sources.join('') : '',
  }
}
