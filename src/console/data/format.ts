// How figures and times are written. All times are local; their UTC is in the title (parts/time.tsx).

const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '—' : whole.format(value)
}

/** Writes how many there are of something: `1 message`, `12,345 messages`. */
export function counted(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? '' : 's'}`
}

/** Writes 12,345 as `12.3K`, for places where little fits. */
export function shortCount(value: number): string {
  return value < 10_000 ? whole.format(value) : short.format(value)
}

export function percent(share: number | undefined): string {
  if (share === undefined || Number.isNaN(share)) return '—'
  if (share === 0 || share === 1) return `${share * 100} %`
  // A share that isn't whole is never rounded to none or to all.
  if (share < 0.001) return `${Math.max(0.01, share * 100).toFixed(2)} %`
  if (share > 0.999) return `${Math.min(99.99, share * 100).toFixed(2)} %`
  return `${(share * 100).toFixed(1)} %`
}

export function millis(value: number | null | undefined): string {
  if (value === null || value === undefined) return '—'
  if (value === 0) return '0 ms'
  if (value < 10) return `${value.toFixed(1)} ms`
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`
  if (value < 1e6) return `${(value / 1e3).toFixed(1)} KB`
  return value < 1e9 ? `${(value / 1e6).toFixed(1)} MB` : `${(value / 1e9).toFixed(2)} GB`
}

/** Writes a duration in its two largest units: `3 h 20 min`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '—'
  const rest = Math.max(0, Math.round(seconds))
  if (rest < 60) return `${rest} s`
  const minutes = Math.round(rest / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  const days = Math.floor(hours / 24)
  return hours % 24 === 0 ? `${days} d` : `${days} d ${hours % 24} h`
}

/** Writes how far a time is from now: `4 min ago`, `in 40 s`. */
export function fromNow(iso: string, now: number): string {
  const seconds = (Date.parse(iso) - now) / 1000
  if (Math.abs(seconds) < 1) return 'now'
  return seconds < 0 ? `${duration(-seconds)} ago` : `in ${duration(seconds)}`
}

const two = (value: number): string => String(value).padStart(2, '0')

function localDay(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
}

export function localClock(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
}

/** Writes a local time. The day is left out if it is today. */
export function localTime(iso: string, now: number, { hasMillis = false } = {}): string {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return iso
  const clock = hasMillis
    ? `${localClock(time)}.${String(time.getMilliseconds()).padStart(3, '0')}`
    : localClock(time)
  return localDay(time) === localDay(new Date(now)) ? clock : `${localDay(time)} ${clock}`
}

/** Writes a JSON value in one line. A text stays without quotes. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return '—'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
