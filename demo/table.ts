import { styleText } from 'node:util'
import { clock, type Picture, type Row } from './picture.ts'

type Colour = 'green' | 'yellow' | 'red' | 'dim' | 'bold'

type Column = {
  title: string
  width: number
  /** `true` for a column that is left out if the terminal is too narrow. */
  isOptional?: true
  side: 'left' | 'right'
  text: (row: Row) => string
  colour?: (row: Row) => Colour | undefined
}

const count = (value: number): string => (value === 0 ? '-' : String(value))

const columns: readonly Column[] = [
  { title: 'destination', width: 11, side: 'left', text: ({ id }) => id },
  { title: 'its server', width: 24, side: 'left', text: ({ server }) => server, colour: () => 'dim' },
  { title: 'sent', width: 4, side: 'right', text: ({ sent }) => count(sent) },
  {
    title: 'delivered',
    width: 9,
    side: 'right',
    text: ({ delivered }) => count(delivered),
    colour: ({ delivered }) => (delivered > 0 ? 'green' : undefined),
  },
  {
    title: 'waiting',
    width: 7,
    side: 'right',
    text: ({ waiting }) => count(waiting),
    colour: ({ waiting }) => (waiting > 0 ? 'yellow' : undefined),
  },
  {
    title: 'dead',
    width: 4,
    side: 'right',
    text: ({ dead }) => count(dead),
    colour: ({ dead }) => (dead > 0 ? 'red' : undefined),
  },
  { title: 'tries', width: 5, side: 'right', text: ({ tries }) => count(tries) },
  {
    title: 'signature ok',
    width: 12,
    isOptional: true,
    side: 'right',
    text: ({ verified, wrong }) => (wrong > 0 ? `${wrong} BAD` : count(verified)),
    colour: ({ wrong }) => (wrong > 0 ? 'red' : undefined),
  },
  { title: 'answer', width: 6, isOptional: true, side: 'right', text: ({ lastAnswer }) => lastAnswer },
]
const gap = '  '

/**
 * Draws the picture as a table. Optional columns are left out as long as the table is wider than `width`
 * characters.
 */
export function drawTable({ rows, ...picture }: Picture, width: number): string[] {
  const shown = fit(width)
  const heading = shown.map(({ title, width: wide, side }) => align(title, wide, side)).join(gap)
  return [
    paint('bold', heading),
    ...rows.map((row) => shown.map((column) => cell(column, row)).join(gap)),
    '',
    drawKafka(picture, width),
  ]
}

function drawKafka({ written, lag, parked, deadLetters }: Omit<Picture, 'rows'>, width: number): string {
  const parts = [
    `events ${written} written`,
    `lag ${lag}`,
    ...parked.map(({ tier, count: waiting }) => `${tier} ${waiting}`),
    `dead-letters ${deadLetters}`,
  ]
  return `Kafka  ${parts.join(' | ')}`.slice(0, width)
}

/** Draws the lines above the table: the elapsed time, and the sentences about what is happening. */
export function drawHeading(elapsedMs: number, stories: readonly string[], width: number): string[] {
  const time = clock(elapsedMs)
  return stories.map((story, index) => {
    const line = `${index === 0 ? time.padStart(5) : '     '}  ${story}`.slice(0, width)
    return index === 0 ? paint('bold', line) : line
  })
}

/** Colours a text if the output is a terminal with colours. */
export function paint(colour: Colour, text: string): string {
  return styleText(colour, text)
}

function fit(width: number): readonly Column[] {
  const shown = [...columns]
  while (widthOf(shown) > width) {
    const last = shown.findLastIndex(({ isOptional }) => isOptional)
    if (last === -1) break
    shown.splice(last, 1)
  }
  return shown
}

function cell({ width, side, text, colour }: Column, row: Row): string {
  const aligned = align(text(row), width, side)
  const painted = colour?.(row)
  return painted === undefined ? aligned : paint(painted, aligned)
}

function align(text: string, width: number, side: 'left' | 'right'): string {
  return side === 'left' ? text.padEnd(width) : text.padStart(width)
}

function widthOf(shown: readonly Column[]): number {
  return shown.reduce((sum, { width }) => sum + width, (shown.length - 1) * gap.length)
}
