import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** Returns a text once nobody has typed for a moment, so that not each key asks the server. */
export function useSettled(text: string, forMs = 400): string {
  const settled = useSignal(text)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = text
    }, forMs)
    return () => clearTimeout(timer)
  }, [text, forMs])
  return settled.value
}
