/** A colour as red, green and blue, each from 0 to 255. */
type Colour = readonly [number, number, number]

/** The backgrounds of the pages (styles.css), on which the accent is text. */
const backs = { light: [255, 255, 255], dark: [20, 23, 27] } as const satisfies Record<string, Colour>
const white: Colour = [255, 255, 255]
const black: Colour = [0, 0, 0]

/** The least contrast of text (WCAG 2.2 AA). The accent's own pale background costs some of it. */
const leastContrast = 4.5
const paleShare = 0.12

/** What a theme makes of a colour: readable as text, and with a text that is readable on it. */
export type Accent = { readonly accent: string; readonly pale: string; readonly on: string }

/**
 * Fits a colour such as `#0a7d55` to a theme. It becomes darker or lighter until it can be read, also on its
 * pale form. Returns `undefined` for a text that is no colour.
 */
export function fitAccent(given: string, theme: keyof typeof backs): Accent | undefined {
  const colour = colourOf(given)
  if (colour === undefined) return undefined
  const back = backs[theme]
  for (let step = 0; step <= 20; step++) {
    const accent = mix(theme === 'light' ? black : white, colour, step / 20)
    const pale = mix(colour, back, paleShare)
    if (Math.min(contrast(accent, back), contrast(accent, pale)) < leastContrast) continue
    const on = contrast(accent, white) >= contrast(accent, black) ? white : black
    return { accent: hexOf(accent), pale: hexOf(pale), on: hexOf(on) }
  }
  return undefined
}

function colourOf(text: string): Colour | undefined {
  const digits = /^#(?:([0-9a-f]{3})|([0-9a-f]{6}))$/i.exec(text)
  if (digits === null) return undefined
  const [, short, long = ''] = digits
  const hex = short === undefined ? long : short.replaceAll(/./g, '$&$&')
  const part = (at: number): number => Number.parseInt(hex.slice(at, at + 2), 16)
  return [part(0), part(2), part(4)]
}

/** Returns `one` with a share (0 to 1) of it, and the rest of `other`. */
function mix(one: Colour, other: Colour, share: number): Colour {
  const part = (at: 0 | 1 | 2): number => Math.round(one[at] * share + other[at] * (1 - share))
  return [part(0), part(1), part(2)]
}

function hexOf(colour: Colour): string {
  return `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

/** The contrast of two colours, 1 to 21 (WCAG 2.2). */
export function contrast(one: Colour, other: Colour): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
