import { type Signal, useSignal } from '@preact/signals'
import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { prettyJson, readJson } from '../data/json.ts'
import { seesContent } from '../data/session.ts'
import { useSettled } from '../data/settled.ts'
import { useAct } from '../parts/act.tsx'
import { Button, Choice, Field } from '../parts/form.tsx'
import { NotYet, ProblemNote } from '../parts/problem.tsx'
import { given, textAt, words } from './draft-text.ts'
import { type Draft, ruleOf } from './draft.ts'
import { FaultPlace } from './fault-place.tsx'
import { TriedMessages } from './tried-messages.tsx'

const example = {
  type: 'track',
  userId: 'u1',
  event: 'Order Completed',
  properties: { total: 120, currency: 'EUR' },
}

/** Tries the filter and the mappings of a form on messages. Nothing is sent or saved. */
export function RuleTrial({ draft }: { draft: Draft }) {
  const pasted = useSignal(JSON.stringify(example, null, 2))
  const rule = triedRuleOf(draft)
  const url = draft.hooks[0]?.url ?? ''
  if (rule === undefined) return <p class="quiet">Write the mappings as a list in JSON first.</p>
  return (
    <>
      <Pasted rule={rule} url={url} pasted={pasted} />
      {seesContent.value ? (
        <Recent
          rule={rule}
          url={url}
          sources={words(draft.sources)}
          onTake={(message) => {
            pasted.value = prettyJson(message)
          }}
        />
      ) : null}
    </>
  )
}

/** Returns the rule of a form. `undefined`: its mappings are no list. */
function triedRuleOf(draft: Draft): api.TriedRule | undefined {
  const { filter, mappings } = ruleOf(draft)
  if (mappings !== undefined && !Array.isArray(mappings)) return undefined
  return given({ filter, mappings })
}

type PastedProps = { rule: api.TriedRule; url: string; pasted: Signal<string> }

/** A message that somebody types or pastes. What becomes of it is shown while it is typed. */
function Pasted({ rule, url, pasted }: PastedProps) {
  const messages = messagesIn(pasted.value)
  const settled = useSettled(messages === undefined ? '' : JSON.stringify([rule, messages]))
  return (
    <>
      <Field
        label="A message to try it on"
        value={pasted.value}
        rows={6}
        isMono
        fault={messages === undefined ? 'This is neither a JSON object nor a list of them.' : undefined}
        hint="As clients send it, or a list of such messages."
        onInput={(text) => {
          pasted.value = text
        }}
      />
      {messages === undefined || settled === '' ? null : <Answered text={settled} url={url} />}
    </>
  )
}

/** Asks for what was typed, and shows the answer. */
function Answered({ text, url }: { text: string; url: string }) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was written above
  const [rule, messages] = JSON.parse(text) as [api.TriedRule, Record<string, unknown>[]]
  const { asked } = useAsk(text, (reading) => api.tryRule(rule, messages, reading))
  const results = asked.value.value?.results
  const condition = textAt(rule.filter ?? {}, 'condition')
  return (
    <>
      <NotYet asked={asked.value} />
      <FaultPlace condition={condition} detail={asked.value.problem?.detail ?? ''} />
      {results === undefined ? null : <TriedMessages name="The message" results={results} url={url} />}
    </>
  )
}

type RecentProps = {
  rule: api.TriedRule
  url: string
  sources: readonly string[]
  onTake: (message: string) => void
}

/** The last messages of a source. They are about people, so each look is written down. */
function Recent({ rule, url, sources, onTake }: RecentProps) {
  const chosen = useSignal('')
  const source = sources.includes(chosen.value) ? chosen.value : (sources[0] ?? '')
  const tried = useAct(() => api.tryRuleOnSource(source, rule), { isReading: true })
  if (source === '') return null
  return (
    <>
      {sources.length === 1 ? null : (
        <Choice
          label="Real messages of"
          value={source}
          options={sources.map((id) => ({ value: id, name: id }))}
          onChange={(id) => {
            chosen.value = id
          }}
        />
      )}
      <Button onClick={() => void tried.run()} isBusy={tried.isBusy}>
        {`Try it on the last messages of ${source}`}
      </Button>{' '}
      <span class="quiet">A look is written to the audit trail.</span>
      <ProblemNote problem={tried.problem} />
      {tried.done === undefined ? null : (
        <TriedMessages
          name="The last messages, newest first"
          results={tried.done.results}
          url={url}
          onTake={onTake}
        />
      )}
    </>
  )
}

/** Returns the messages that a text has. `undefined`: it has none. */
function messagesIn(text: string): readonly object[] | undefined {
  const value = readJson(text)
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const objects = list.filter(isObject)
  return objects.length === 0 || objects.length < list.length ? undefined : objects
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
