import { Button, Field } from '../parts/form.tsx'
import { type DraftHook, draftHookOf } from './draft-hook.ts'
import { LoginFields } from './login-fields.tsx'

type Props = {
  hooks: readonly DraftHook[]
  onChange: (hooks: readonly DraftHook[]) => void
  /** Whether only the URLs themselves may be changed. */
  isOnlyUrls: boolean
}

const mostHooks = 5

/** The URLs of a destination, with their headers and logins. */
export function HookFields({ hooks, onChange, isOnlyUrls }: Props) {
  const set = (place: number, change: Partial<DraftHook>): void =>
    onChange(hooks.map((hook, at) => (at === place ? { ...hook, ...change } : hook)))
  return (
    <>
      {hooks.map((hook, place) => {
        const suffix = hooks.length === 1 ? '' : ` ${place + 1}`
        return (
          <fieldset key={place}>
            <legend>{`URL${suffix}`}</legend>
            <Field
              label={`Full URL${suffix}`}
              value={hook.url}
              onInput={(url) => set(place, { url })}
              placeholder="https://api.example.com/webhook"
              required
              isMono
            />
            {isOnlyUrls ? null : <More hook={hook} suffix={suffix} set={(change) => set(place, change)} />}
            {isOnlyUrls || hooks.length === 1 ? null : (
              <Button onClick={() => onChange(hooks.filter((_, at) => at !== place))}>Remove this URL</Button>
            )}
          </fieldset>
        )
      })}
      {isOnlyUrls || hooks.length >= mostHooks ? null : (
        <Button onClick={() => onChange([...hooks, draftHookOf({ url: '' })])}>Add another URL</Button>
      )}
    </>
  )
}

type MoreProps = { hook: DraftHook; set: (change: Partial<DraftHook>) => void; suffix: string }

function More({ hook, set, suffix }: MoreProps) {
  return (
    <>
      <details open={hook.headers !== ''}>
        <summary>Headers</summary>
        <Field
          label={`Headers${suffix}`}
          value={hook.headers}
          onInput={(headers) => set({ headers })}
          rows={2}
          isMono
          hint="Name: value, one a line. ${kept:…} stands for a value that stays as it is."
        />
      </details>
      <LoginFields hook={hook} set={set} suffix={suffix} />
    </>
  )
}
