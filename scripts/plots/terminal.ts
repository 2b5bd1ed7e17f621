/** A recording of a terminal as an animated SVG, for pages of the docs. */

export type Colour = 'red' | 'green' | 'yellow' | 'plain'

/** A piece of a line in one style. `column` counts from 0. */
export type Run = {
  readonly column: number
  readonly text: string
  readonly colour: Colour
  readonly isBold: boolean
  readonly isDim: boolean
}

/** A screen as lines from the top, and the time at which it appeared. */
export type Frame = { readonly atMs: number; readonly lines: readonly (readonly Run[])[] }

export type Recording = {
  readonly title: string
  readonly columns: number
  readonly rows: number
  /** The screens in order of time. */
  readonly frames: readonly Frame[]
  /** The factor by which the picture plays faster than the recording. */
  readonly speed: number
  /** Time for which the last screen stays before the picture begins again, in milliseconds. */
  readonly holdMs: number
}

const cell = { width: 7.8, height: 17 }
const margin = 14
const bar = 28
const ink: Record<Colour, string> = {
  plain: '#d4d4d8',
  red: '#f87171',
  green: '#4ade80',
  yellow: '#facc15',
}

/**
 * Draws a recording. The frames are below each other, like a film that steps through a window. If a viewer
 * doesn't animate SVG, or its user has asked for less motion, the viewer shows the last frame.
 */
export function drawTerminal(recording: Recording): string {
  const { title, columns, rows, frames } = recording
  const inner = { width: Math.ceil(columns * cell.width), height: rows * cell.height }
  const width = inner.width + 2 * margin
  const height = inner.height + bar + margin
  const { defined, film } = drawFilm(frames, inner.height)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${styleOf(recording, inner.height)}</style>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#18181b"/>`,
    ...['#f87171', '#facc15', '#4ade80'].map(
      (fill, index) => `<circle cx="${18 + index * 16}" cy="15" r="5" fill="${fill}"/>`,
    ),
    `<defs>`,
    ...defined,
    `</defs>`,
    `<svg x="${margin}" y="${bar}" width="${inner.width}" height="${inner.height}">`,
    `<g class="film">`,
    ...film,
    `</g>`,
    `</svg>`,
    '</svg>\n',
  ].join('\n')
}

/**
 * Draws the frames. Each distinct line is defined once, because most lines of a screen were on the previous
 * one.
 */
function drawFilm(frames: readonly Frame[], height: number): { defined: string[]; film: string[] } {
  const ids = new Map<string, string>()
  const film = frames.map(({ lines }, index) => {
    const uses = lines.flatMap((runs, row) => {
      if (runs.length === 0) return []
      const drawn = runs.map(drawRun).join('')
      const id = ids.get(drawn) ?? `l${ids.size}`
      ids.set(drawn, id)
      return [`<use href="#${id}" y="${row * cell.height + 13}"/>`]
    })
    return `<g transform="translate(0 ${index * height})">${uses.join('')}</g>`
  })
  return { defined: [...ids].map(([drawn, id]) => `<text id="${id}">${drawn}</text>`), film }
}

function drawRun({ column, text, colour, isBold, isDim }: Run): string {
  const styles = [
    ...(colour === 'plain' ? [] : [colour]),
    ...(isBold ? ['bold'] : []),
    ...(isDim ? ['dim'] : []),
  ]
  const named = styles.length === 0 ? '' : ` class="${styles.join(' ')}"`
  return `<tspan x="${rounded(column * cell.width)}"${named}>${escaped(text)}</tspan>`
}

function styleOf({ frames, speed, holdMs }: Recording, height: number): string {
  const startMs = frames[0]?.atMs ?? 0
  const lastMs = frames.at(-1)?.atMs ?? startMs
  const totalMs = (lastMs - startMs) / speed + holdMs
  const steps = frames.map(({ atMs }, index) => {
    const percent = rounded((((atMs - startMs) / speed) * 100) / totalMs)
    return `${percent}%{transform:translateY(${-index * height}px)}`
  })
  const last = -Math.max(0, frames.length - 1) * height
  return [
    `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:${ink.plain};white-space:pre}`,
    `.red{fill:${ink.red}}.green{fill:${ink.green}}.yellow{fill:${ink.yellow}}.bold{font-weight:bold}.dim{fill:#a1a1aa}`,
    `.film{transform:translateY(${last}px);animation:film ${Math.round(totalMs)}ms step-end infinite}`,
    `@media (prefers-reduced-motion:reduce){.film{animation:none}}`,
    `@keyframes film{${steps.join('')}100%{transform:translateY(${last}px)}}`,
  ].join('')
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
