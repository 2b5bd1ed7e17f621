import type { Page } from 'playwright-core'

/** How often Tab is pressed at most until the focus is where it should be. */
const mostTabs = 200

/** Somebody who uses a page with the keyboard alone. */
export type KeyboardOnly = {
  /**
   * Presses Tab until the focus is on the element with this name, as a screen reader says it. Throws if it
   * never is, or if an element on the way doesn't show that it has the focus.
   */
  to(name: string): Promise<void>
  /** Goes to an element and presses Enter. */
  press(name: string): Promise<void>
  /** Goes to a field and types, in place of what it has. */
  fill(name: string, text: string): Promise<void>
  /** Presses keys one after the other. */
  keys(...keys: readonly string[]): Promise<void>
}

export function keyboardOnly(page: Page): KeyboardOnly {
  const { keyboard } = page
  async function to(name: string): Promise<void> {
    const passed: string[] = []
    for (let tab = 0; tab < mostTabs; tab++) {
      await keyboard.press('Tab')
      const focused: Focused = await page.evaluate(focusedScript)
      if (!focused.isVisible) throw new Error(`${focused.name} doesn't show that it has the focus`)
      if (focused.name === name) return
      passed.push(focused.name)
    }
    throw new Error(`Tab does not reach ${name}, but ${[...new Set(passed)].join(', ')}`)
  }
  async function keys(...given: readonly string[]): Promise<void> {
    for (const key of given) await keyboard.press(key)
  }
  return {
    to,
    keys,
    async press(name) {
      await to(name)
      await keyboard.press('Enter')
    },
    async fill(name, text) {
      await to(name)
      await keyboard.press('Control+A')
      await keyboard.type(text)
    },
  }
}

type Focused = { readonly name: string; readonly isVisible: boolean }

/** The page itself has the focus between the last and the first element. */
const focusedScript = `(() => {
  const focused = document.activeElement
  if (focused === null || focused === document.body) return { name: '', isVisible: true }
  const [label] = focused.labels ?? []
  const name = focused.getAttribute('aria-label') ?? label?.textContent ?? focused.textContent ?? ''
  return { name: name.trim(), isVisible: getComputedStyle(focused).outlineStyle !== 'none' }
})()`
