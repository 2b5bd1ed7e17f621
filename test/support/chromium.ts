import { type Browser, chromium } from 'playwright-core'
import { findOnPath } from './debian.ts'

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/** Returns the path of a Chromium or Chrome on the PATH. */
export function findChromium(): string | undefined {
  for (const name of names) {
    const found = findOnPath(name)
    if (found !== undefined) return found
  }
  return undefined
}

/** Starts a headless Chromium. Throws an error that says what to do if there is none. */
export function startChromium(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) {
    throw new Error(
      `missing: Chromium (${names.join(', ')}). Install it; on Debian, as root: apt-get install chromium`,
    )
  }
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
