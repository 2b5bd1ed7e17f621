import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type FieldProps = {
  label: string
  value: string
  onInput: (value: string) => void
  hint?: ComponentChildren
  /** What is wrong with the value. */
  fault?: string | undefined
  type?: 'text' | 'password'
  /** Whether phones show a keyboard for numbers. */
  isNumber?: boolean
  placeholder?: string
  rows?: number
  required?: boolean
  readOnly?: boolean
  isMono?: boolean
  autoFocus?: boolean
  name?: string
}

export function Field(props: FieldProps) {
  const id = useId()
  const { label, value, onInput, hint, fault, rows } = props
  const described = hint === undefined && fault === undefined ? {} : { 'aria-describedby': `${id}-hint` }
  const common = {
    id,
    value,
    name: props.name ?? label,
    required: props.required === true,
    readOnly: props.readOnly === true,
    autofocus: props.autoFocus === true,
    spellcheck: false,
    autocomplete: 'off' as const,
    class: props.isMono === true ? 'mono' : undefined,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
    ...(fault === undefined ? {} : { 'aria-invalid': 'true' as const }),
    ...described,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? null : <textarea {...common} rows={rows} placeholder={props.placeholder ?? ''} />}
      {rows === undefined && props.type === 'password' ? <input {...common} type="password" /> : null}
      {rows === undefined && props.type !== 'password' ? (
        <input
          {...common}
          type="text"
          {...(props.isNumber === true ? { inputMode: 'numeric' as const } : {})}
          placeholder={props.placeholder ?? ''}
        />
      ) : null}
      {hint === undefined && fault === undefined ? null : (
        <p id={`${id}-hint`} class={fault === undefined ? 'hint' : 'hint fault'}>
          {fault ?? hint}
        </p>
      )}
    </div>
  )
}

type ChoiceProps<V extends string> = {
  label: string
  value: V
  options: readonly { readonly value: V; readonly name: string }[]
  onChange: (value: V) => void
  isLabelHidden?: boolean
}

export function Choice<V extends string>({ label, value, options, onChange, isLabelHidden }: ChoiceProps<V>) {
  const id = useId()
  return (
    <div class="field">
      <label for={id} class={isLabelHidden === true ? 'hidden' : undefined}>
        {label}
      </label>
      <select
        id={id}
        value={value}
        onChange={(event) => {
          const found = options.find((one) => one.value === event.currentTarget.value)
          if (found !== undefined) onChange(found.value)
        }}
      >
        {options.map((one) => (
          <option key={one.value} value={one.value}>
            {one.name}
          </option>
        ))}
      </select>
    </div>
  )
}

type CheckProps = { label: string; value: boolean; onChange: (value: boolean) => void; hint?: string }

export function Check({ label, value, onChange, hint }: CheckProps) {
  const id = useId()
  return (
    <div class="field check">
      <input
        id={id}
        type="checkbox"
        checked={value}
        onChange={(event) => onChange(event.currentTarget.checked)}
        {...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` })}
      />
      <label for={id}>{label}</label>
      {hint === undefined ? null : (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

export type ButtonProps = {
  children: ComponentChildren
  onClick?: () => void
  tone?: 'main' | 'plain' | 'danger'
  isBusy?: boolean
  disabled?: boolean
}

/** A button keeps the focus while it is busy, so the keyboard goes on where it was. */
export function Button({ children, onClick, tone = 'plain', isBusy = false, disabled = false }: ButtonProps) {
  return (
    <button
      type="button"
      data-tone={tone}
      disabled={disabled}
      aria-disabled={isBusy}
      aria-busy={isBusy}
      onKeyDown={(event) => {
        // A key that is held would press the button of the next step too, which has the focus then.
        if (event.repeat && event.key === 'Enter') event.preventDefault()
      }}
      onClick={() => {
        if (!isBusy) onClick?.()
      }}
    >
      {children}
    </button>
  )
}
