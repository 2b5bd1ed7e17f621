import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

type Props = {
  summary: string
  /** Makes the content. It isn't called before somebody opens the details. */
  content: () => ComponentChildren
  isOpenFirst?: boolean
}

/** Details that cost nothing until they are opened. */
export function LazyDetails({ summary, content, isOpenFirst = false }: Props) {
  const isOpen = useSignal(isOpenFirst)
  return (
    <details
      open={isOpenFirst}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open
      }}
    >
      <summary>{summary}</summary>
      {isOpen.value ? content() : null}
    </details>
  )
}
