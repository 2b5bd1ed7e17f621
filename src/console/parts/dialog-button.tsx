import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Button, type ButtonProps } from './form.tsx'

type Props = Pick<ButtonProps, 'tone' | 'disabled'> & {
  label: string
  /** Returns the dialog, which calls `onClose` when it is to be gone. */
  children: (onClose: () => void) => ComponentChildren
}

/** A button that opens a dialog. */
export function DialogButton({ label, children, ...look }: Props) {
  const isOpen = useSignal(false)
  return (
    <>
      <Button
        {...look}
        onClick={() => {
          isOpen.value = true
        }}
      >
        {label}
      </Button>
      {isOpen.value
        ? children(() => {
            isOpen.value = false
          })
        : null}
    </>
  )
}
