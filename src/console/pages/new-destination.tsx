import { useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { destinationOf, draftOf, noDestination } from '../editor/draft.ts'
import { go, urlOf } from '../data/route.ts'
import { known } from '../data/session.ts'
import { useAct } from '../parts/act.tsx'
import { DestinationForm } from '../editor/destination-form.tsx'
import { Page } from '../parts/page.tsx'
import { ProblemNote } from '../parts/problem.tsx'

export function NewDestinationPage() {
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
    if (answer.ok) go(urlOf('destination', { id: draft.id.trim() }))
  }
  return (
    <Page title="Add a destination">
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
    </Page>
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
