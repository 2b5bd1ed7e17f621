/**
 * A time in UTC that no quotation mark touches: what a message or an answer says stays as it is. Seconds may
 * be absent.
 */
const utcTime = /(?<!["'\w.:-])(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?(?:\.\d{1,9})?Z(?!["'\w])( *)/g

/**
 * Returns a line with its times as the clock on the wall has them, each with its distance from UTC, such as
 * `2026-07-29T11:30:00+02:00`. Commands take such a time too. Columns stay where they are.
 *
 * @param offsetOf returns how many minutes the local time is ahead of UTC at a time in epoch milliseconds.
 */
export function withLocalTimes(line: string, offsetOf: (ms: number) => number = localOffset): string {
  return line.replaceAll(utcTime, (whole, minutes: string, seconds: string | undefined, spaces: string) => {
    const ms = Date.parse(`${minutes}${seconds ?? ':00'}Z`)
    if (Number.isNaN(ms)) return whole
    const offset = offsetOf(ms)
    const local = new Date(ms + offset * 60_000).toISOString().slice(0, seconds === undefined ? 16 : 19)
    const shown = `${local}${zoneOf(offset)}`
    return spaces.length < 2 ? `${shown}${spaces}` : `${shown.padEnd(whole.length - 2)}  `
  })
}

function localOffset(ms: number): number {
  return -new Date(ms).getTimezoneOffset()
}

function zoneOf(offset: number): string {
  const [hours, minutes] = [Math.trunc(Math.abs(offset) / 60), Math.abs(offset) % 60]
  return `${offset < 0 ? '-' : '+'}${two(hours)}:${two(minutes)}`
}

function two(count: number): string {
  return String(count).padStart(2, '0')
}
