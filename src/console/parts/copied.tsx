import { useSignal } from '@preact/signals'
import { Button } from './form.tsx'

/** A text to paste elsewhere, with a button that copies it. */
export function Copied({ text }: { text: string }) {
  const told = useSignal('')
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      told.value = 'Copied.'
    } catch {
      told.value = 'The browser does not let this page copy. Select the text instead.'
    }
  }
  return (
    <>
      <pre class="copied" tabIndex={0}>
        {text}
      </pre>
      <Button onClick={() => void copy()}>Copy</Button> <span role="status">{told.value}</span>
    </>
  )
}
