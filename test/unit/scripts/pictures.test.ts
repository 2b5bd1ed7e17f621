import { describe, expect, it } from 'vitest'
import { drawTerminal, type Frame } from '../../../scripts/plots/terminal.ts'
import { svgFault } from '../../../scripts/svg.ts'

const plain = { column: 0, colour: 'plain', isBold: false, isDim: false } as const

function draw(frames: readonly Frame[]): string {
  return drawTerminal({ title: 'a <demo>', columns: 20, rows: 2, frames, speed: 2, holdMs: 1_000 })
}

describe('a picture of the docs', () => {
  it('is refused where a tag is left open', () => {
    expect(svgFault('<svg xmlns="http://www.w3.org/2000/svg"><g></svg>')).toMatch(/unexpected close tag/)
  })

  it('is refused where its root is no SVG', () => {
    expect(svgFault('<html xmlns="http://www.w3.org/1999/xhtml"/>')).toMatch(/its root is no <svg>/)
  })

  it('is taken where it is well-formed', () => {
    expect(svgFault('<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>')).toBeUndefined()
  })
})

describe('a recorded terminal', () => {
  const first: Frame = { atMs: 4_000, lines: [[{ ...plain, text: 'a < b & "c"' }], []] }
  const second: Frame = {
    atMs: 8_000,
    lines: [[{ ...plain, text: 'a < b & "c"' }], [{ ...plain, text: 'end' }]],
  }

  it('is well-formed SVG whatever the terminal showed', () => {
    expect(svgFault(draw([first, second]))).toBeUndefined()
  })

  it('holds a line once that several screens show', () => {
    expect(draw([first, second]).match(/a &lt; b/g)).toHaveLength(1)
  })

  it('steps from screen to screen by their times, and stays at the last one', () => {
    // The second screen comes after two thirds of the film. The first one lasts 4 s at twice the speed, and
    // the last one stays for 1 s.
    expect(draw([first, second])).toContain(
      '0%{transform:translateY(0px)}66.67%{transform:translateY(-34px)}100%{transform:translateY(-34px)}',
    )
  })

  it('shows its last screen where nothing is animated', () => {
    expect(draw([first, second])).toContain('.film{transform:translateY(-34px);animation:film 3000ms')
  })
})
