import type { Page } from 'playwright-core'

/** How often Tab is pressed at most until the focus is where it should be. */
const mostTabs = 200

/** Somebody who uses a page with the keyboard alone. */
export type KeyboardOnly = {
  /**
   * Presses Tab until the focus is on the element with this name, as a screen reader says it. Throws if it
   * never is, or if an element on the way doesn't show that it has the focus, or can't be seen itself.
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
      if (focused.fault !== '') throw new Error(`${focused.name}: ${focused.fault}`)
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

type Focused = {
  readonly name: string
  /** Why somebody doesn't see that it has the focus. Empty: they do. */
  readonly fault: string
}

/** The page itself has the focus between the last and the first element. */
const focusedScript = `(() => {
  const focused = document.activeElement
  if (focused === null || focused === document.body) return { name: '', fault: '' }
  const [label] = focused.labels ?? []
  const name = focused.getAttribute('aria-label') ?? label?.textContent ?? focused.textContent ?? ''
  const faultOf = () => {
    if (getComputedStyle(focused).outlineStyle === 'none') return 'does not show that it has the focus'
    const [box] = focused.getClientRects()
    if (box === undefined || box.width < 2 || box.height < 2) return 'is not drawn'
    const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)]
    const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)]
    if (left >= right || top >= bottom) return 'is outside of the window'
    const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
    const isOnTop = seen !== null && (focused.contains(seen) || seen.contains(focused))
    return isOnTop ? '' : 'is behind ' + (seen?.outerHTML.slice(0, 100) ?? 'nothing')
  }
  return { name: name.trim(), fault: faultOf() }
})()`
