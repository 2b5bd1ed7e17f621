import { SaxesParser } from 'saxes'

/**
 * Returns the reason why a text isn't a well-formed SVG, in one line. Returns `undefined` if it is one.
 */
export function svgFault(text: string): string | undefined {
  const parser = new SaxesParser({ xmlns: true })
  let fault: string | undefined
  let root: string | undefined
  parser.on('error', ({ message }) => {
    fault ??= message
  })
  parser.on('opentag', ({ local, uri }) => {
    root ??= `${uri} ${local}`
  })
  parser.write(text).close()
  return (
    fault ?? (root === 'http://www.w3.org/2000/svg svg' ? undefined : `its root is no <svg>, but ${root}`)
  )
}
