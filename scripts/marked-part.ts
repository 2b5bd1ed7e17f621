/** The lines around the part of a page that `npm run generate` writes. */
export type Marks = { readonly begin: string; readonly end: string }

/**
 * Returns the page with new content between the marks. Returns `undefined` if the page lacks one of the
 * marks.
 */
export function replaceMarked(page: string, { begin, end }: Marks, content: string): string | undefined {
  const [before = '', rest] = page.split(`${begin}\n`)
  const after = rest?.split(`${end}\n`)[1]
  return after === undefined ? undefined : `${before}${begin}\n\n${content}\n\n${end}\n${after}`
}
