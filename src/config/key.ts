import { isIP } from 'node:net'
import { formatWait, parseWait } from '../retry/duration.ts'

/**
 * A key of the configuration: how its text is read, and how it is documented. `Suffix` is the unit that is
 * added to the key's name in `Config`: `kafka.sessionTimeout` becomes `config.kafka.sessionTimeoutMs`.
 */
export type Key<T, Suffix extends '' | 'Ms' = ''> = {
  readonly suffix: Suffix
  /** The name of the flag's value in the help. */
  readonly placeholder: string
  /**
   * The accepted values, in words, such as `a duration from 6s to 5m`. The documentation and the messages of
   * faults contain this text.
   */
  readonly expected: string
  readonly description: string
  /** The default value. `undefined` if the key isn't set by default. */
  readonly defaultValue: T
  /**
   * True if the value is never shown. Such a key has no flag, because every user of the machine can read the
   * arguments of a process.
   */
  readonly isSecret: boolean
  /** The name of a second environment variable. It is read if the first variable isn't set. */
  readonly alias: string | undefined
  /**
   * Reads a text. Returns `undefined` if the text isn't one of the values that `expected` describes. Never
   * throws.
   */
  parse(text: string): { readonly value: T } | undefined
  /** Returns the text of a value. `parse` reads the same value from this text. */
  format(value: T): string
}

type Common<T> = { default: T; description: string }

function key<T, Suffix extends '' | 'Ms'>(
  own: Pick<Key<T, Suffix>, 'suffix' | 'placeholder' | 'expected' | 'parse' | 'format'>,
  { default: defaultValue, description }: Common<T>,
): Key<T, Suffix> {
  return { ...own, description, defaultValue, isSecret: false, alias: undefined }
}

type TextShape = { accepts: (given: string) => boolean; expected: string }

const anyText: TextShape = { accepts: (given) => given !== '', expected: 'text' }

/** Makes a key for a text that `shape` accepts. Without a `shape`, any text that isn't empty is accepted. */
export function text(options: Common<string> & { shape?: TextShape }): Key<string> {
  const { accepts, expected } = options.shape ?? anyText
  return key(
    {
      suffix: '',
      placeholder: 'text',
      expected,
      parse: (given) => (accepts(given) ? { value: given } : undefined),
      format: (value) => value,
    },
    options,
  )
}

/** Makes a key for a text without a default. */
export function optionalText(options: {
  description: string
  isSecret?: boolean
  shape?: TextShape
}): Key<string | undefined> {
  const { accepts, expected } = options.shape ?? anyText
  return {
    ...key<string | undefined, ''>(
      {
        suffix: '',
        placeholder: 'text',
        expected,
        parse: (given) => (accepts(given) ? { value: given } : undefined),
        format: (value) => value ?? '',
      },
      { default: undefined, description: options.description },
    ),
    isSecret: options.isSecret ?? false,
  }
}

export function integer(options: Common<number> & { min: number; max: number }): Key<number> {
  return key(
    {
      suffix: '',
      placeholder: 'number',
      expected: `a whole number from ${options.min} to ${options.max}`,
      parse: (given) => inRange(/^\d{1,10}$/.test(given) ? Number(given) : undefined, options),
      format: String,
    },
    options,
  )
}

/**
 * Makes a key for a whole number or a word. The word stands for a number that is known only when the process
 * runs.
 */
export function integerOr<const Word extends string>(
  options: Common<number | NoInfer<Word>> & { word: Word; min: number; max: number },
): Key<number | Word> {
  const { word, min, max } = options
  const number = integer({ ...options, default: min })
  return key<number | Word, ''>(
    {
      suffix: '',
      placeholder: 'number',
      expected: `${word} or a whole number from ${min} to ${max}`,
      parse: (given) => (given === word ? { value: word } : number.parse(given)),
      format: String,
    },
    options,
  )
}

export function boolean(options: Common<boolean>): Key<boolean> {
  return oneOf({ ...options, values: [true, false], placeholder: 'true|false' })
}

/** Makes a key whose value must be one of a closed list. */
export function choice<const T extends string>(
  options: Common<NoInfer<T>> & { values: readonly T[] },
): Key<T> {
  return oneOf({ ...options, placeholder: 'choice' })
}

function oneOf<T extends string | boolean>(
  options: Common<T> & { values: readonly T[]; placeholder: string },
): Key<T> {
  return key(
    {
      suffix: '',
      placeholder: options.placeholder,
      expected: options.values.join(', ').replace(/, ([^,]*)$/, ' or $1'),
      parse: (given) => {
        const value = options.values.find((candidate) => String(candidate) === given)
        return value === undefined ? undefined : { value }
      },
      format: String,
    },
    options,
  )
}

/**
 * Makes a key for a duration such as `500ms`, `5s`, `1m` or `4h`. `0s` is accepted if `min` is 0. The value
 * is in milliseconds.
 */
export function duration(options: Common<number> & { min: number; max: number }): Key<number, 'Ms'> {
  return key(
    {
      suffix: 'Ms',
      placeholder: 'duration',
      expected: `a duration from ${formatDuration(options.min)} to ${formatDuration(options.max)}`,
      parse: (given) => inRange(given === noTime ? 0 : parseWait(given), options),
      format: formatDuration,
    },
    options,
  )
}

/** Makes a key for a duration, or `off`. The value is in milliseconds. For `off`, it is 0. */
export function durationOrOff(options: Common<number> & { min: number; max: number }): Key<number, 'Ms'> {
  const plain = duration(options)
  return {
    ...plain,
    expected: `off or ${plain.expected}`,
    parse: (given) => (given === 'off' ? { value: 0 } : plain.parse(given)),
    format: (value) => (value === 0 ? 'off' : plain.format(value)),
  }
}

/**
 * The text for a duration of 0. `parseWait` doesn't accept this text, because the wait of a retry tier is
 * never 0.
 */
const noTime = '0s'

function formatDuration(ms: number): string {
  return ms === 0 ? noTime : formatWait(ms)
}

/** Makes a key for one or more durations with commas between them. The values are in milliseconds. */
export function durations(
  options: Common<readonly number[]> & { min: number; max: number; maxItems: number },
): Key<readonly number[], 'Ms'> {
  const { min, max, maxItems } = options
  return key(
    {
      suffix: 'Ms',
      placeholder: 'durations',
      expected: `1 to ${maxItems} durations from ${formatWait(min)} to ${formatWait(max)}, with commas between them`,
      parse: (given) => {
        const values = listOf(given, (item) => inRange(parseWait(item), options)?.value)
        return values !== undefined && values.length >= 1 && values.length <= maxItems
          ? { value: values }
          : undefined
      },
      format: (values) => values.map(formatWait).join(','),
    },
    options,
  )
}

/** Makes a key for texts that `item` accepts, with commas between them. The list may be empty. */
export function texts(
  options: Common<readonly string[]> & { item: TextShape; alias?: string },
): Key<readonly string[]> {
  return {
    ...list(options, `${options.item.expected}, with commas between them`, (item) =>
      options.item.accepts(item) ? item : undefined,
    ),
    alias: options.alias,
  }
}

/**
 * Makes a key for address ranges such as `10.1.0.0/16` or `fd00::/8`. The list may be empty. A single address
 * is a range of one address.
 */
export function cidrs(options: Common<readonly string[]>): Key<readonly string[]> {
  return list(options, 'address ranges such as 10.1.0.0/16 or fd00::/8, with commas between them', cidr)
}

function cidr(item: string): string | undefined {
  const [address = '', prefix, ...rest] = item.split('/')
  const version = isIP(address)
  // A zone (`fe80::1%eth0`) is refused, because it names an interface of one machine.
  if (version === 0 || address.includes('%') || rest.length > 0) return undefined
  const bits = version === 4 ? 32 : 128
  if (prefix === undefined) return `${address}/${bits}`
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) return undefined
  return `${address}/${Number(prefix)}`
}

function list(
  options: Common<readonly string[]>,
  expected: string,
  parseItem: (item: string) => string | undefined,
): Key<readonly string[]> {
  return key(
    {
      suffix: '',
      placeholder: 'list',
      expected,
      parse: (given) => {
        const value = given.trim() === '' ? [] : listOf(given, parseItem)
        return value === undefined ? undefined : { value }
      },
      format: (values) => values.join(','),
    },
    options,
  )
}

const byteUnits: readonly (readonly [suffix: string, bytes: number])[] = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
  ['B', 1],
]

/**
 * Makes a key for a size such as `64MiB`, `512KiB`, `1GiB` or `100B`. The value is in bytes, and the key's
 * name says so.
 */
export function bytes(options: Common<number> & { min: number; max: number }): Key<number> {
  return key(
    {
      suffix: '',
      placeholder: 'bytes',
      expected: `a size from ${formatBytes(options.min)} to ${formatBytes(options.max)} (B, KiB, MiB or GiB)`,
      parse: (given) => {
        const match = /^(\d{1,12})(B|KiB|MiB|GiB)$/.exec(given)
        const unit = byteUnits.find(([suffix]) => suffix === match?.[2])
        return inRange(unit === undefined ? undefined : Number(match?.[1]) * unit[1], options)
      },
      format: formatBytes,
    },
    options,
  )
}

function formatBytes(value: number): string {
  const [suffix, unit] = byteUnits.find(([, each]) => value % each === 0) ?? ['B', 1]
  return `${value / unit}${suffix}`
}

function inRange(value: number | undefined, { min, max }: { min: number; max: number }) {
  return value !== undefined && value >= min && value <= max ? { value } : undefined
}

/** Parses a list with commas. Returns `undefined` if any item is invalid. */
function listOf<T>(given: string, parseItem: (item: string) => T | undefined): readonly T[] | undefined {
  const items = given.split(',').map((item) => parseItem(item.trim()))
  const right = items.filter((item) => item !== undefined)
  return right.length === items.length ? right : undefined
}

/** Returns true for a URL of HTTP or HTTPS without a login, a query or a fragment. */
export function isPlainUrl(given: string): boolean {
  const url = URL.parse(given)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
  return url.username === '' && url.password === '' && url.search === '' && url.hash === ''
}

export const SECOND = 1_000

export const MINUTE = 60 * SECOND

export const HOUR = 60 * MINUTE

export const KIB = 1024

export const MIB = 1024 ** 2
