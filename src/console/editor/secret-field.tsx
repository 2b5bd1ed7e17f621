import { Button, Field } from '../parts/form.tsx'
import { Time } from '../parts/time.tsx'
import { keptSince } from './kept.ts'

type Props = {
  label: string
  value: string
  /** The text that stands for what is set. Empty: nothing is set. */
  kept: string
  onInput: (value: string) => void
  /** Of a text with several lines, such as a certificate. */
  rows?: number
  hint?: string
}

/** A field for a secret, which the server never shows. While it is empty, what is set stays. */
export function SecretField({ label, value, kept, onInput, rows, hint }: Props) {
  const isKept = kept !== '' && value === kept
  const isRemoved = kept !== '' && value === ''
  return (
    <>
      <Field
        label={label}
        value={isKept ? '' : value}
        onInput={(text) => onInput(text === '' ? kept : text)}
        isMono
        hint={isKept ? <Kept since={keptSince(kept)} /> : isRemoved ? 'It is removed when you save.' : hint}
        {...(rows === undefined ? { type: 'password' as const } : { rows })}
      />
      {kept === '' ? null : (
        <Button onClick={() => onInput(isRemoved ? kept : '')}>
          {isRemoved ? `Keep: ${label}` : `Remove: ${label}`}
        </Button>
      )}
    </>
  )
}

function Kept({ since }: { since: string | undefined }) {
  if (since === undefined) return <>Set. Type to replace it.</>
  return (
    <>
      Set since <Time at={since} />. Type to replace it.
    </>
  )
}
