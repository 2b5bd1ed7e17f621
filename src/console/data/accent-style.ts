import { type Accent, fitAccent } from './accent.ts'

/**
 * Gives the pages an accent. The policy of the pages forbids inline styles, but a script of ours may add a
 * style sheet.
 */
export function showAccent(given: string): void {
  const light = fitAccent(given, 'light')
  const dark = fitAccent(given, 'dark')
  if (light === undefined || dark === undefined) return
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(
    `:root { ${variables(light)} }
@media (prefers-color-scheme: dark) { :root:not([data-theme='light']) { ${variables(dark)} } }
:root[data-theme='dark'] { ${variables(dark)} }`,
  )
  document.adoptedStyleSheets = [sheet]
}

function variables({ accent, pale, on }: Accent): string {
  return `--accent: ${accent}; --accent-back: ${pale}; --on-accent: ${on};`
}
