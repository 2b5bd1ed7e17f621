import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Progress, type Screen } from '../../../../src/roles/start/progress.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function recorder(isTerminal: boolean, columns = 80): Screen & { text: string } {
  const screen = {
    isTerminal,
    columns: () => columns,
    text: '',
    write(text: string) {
      screen.text += text
    },
    redraw(text: string) {
      screen.text += `\r${text}\u001b[K`
    },
  }
  return screen
}

/** Lets so much time pass that progress is shown, and reports it. */
function report(progress: Progress, done: number): void {
  vi.advanceTimersByTime(5_000)
  progress.at(done, () => '5 users')
}

describe('progress', () => {
  test('is a bar on a terminal that is drawn over, and ends with a line', () => {
    const screen = recorder(true)
    const progress = new Progress(screen, 'reading', 10)
    report(progress, 5)
    progress.end(10, '10 users')
    expect(screen.text).toBe(
      `\rreading  ${'█'.repeat(12)}${'░'.repeat(12)}  50 %  5 users\u001b[K` +
        `\rreading  ${'█'.repeat(24)} 100 %  10 users\u001b[K\n`,
    )
  })

  test('is never wider than the terminal', () => {
    const screen = recorder(true, 20)
    report(new Progress(screen, 'reading', 10), 5)
    expect(screen.text.replace('\r', '').replace('\u001b[K', '')).toHaveLength(19)
  })

  test('is a line now and then where nothing can be drawn over', () => {
    const screen = recorder(false)
    report(new Progress(screen, 'reading', 10), 5)
    expect(screen.text).toBe('reading  50 %  5 users\n')
  })

  test('is not shown where all is done at once', () => {
    const screen = recorder(true)
    const progress = new Progress(screen, 'reading', undefined)
    progress.at(1, () => '1 user')
    progress.end(1, '1 user')
    expect(screen.text).toBe('')
  })

  test('makes room for a line in between', () => {
    const screen = recorder(true)
    const progress = new Progress(screen, 'sending', undefined)
    report(progress, 5)
    progress.note('Kafka takes nothing')
    expect(screen.text).toBe('\rsending  5 users\u001b[K\nKafka takes nothing\n')
  })
})
