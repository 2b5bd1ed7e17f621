import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { FollowedFile } from './followed-file.ts'
import { codeOf } from './file-shortage.ts'

/**
 * The names of `/etc/hosts`, which take precedence over DNS. Changes of the file are noticed within seconds.
 */
export class HostsFile {
  readonly #file: FollowedFile
  #names: ReadonlyMap<string, readonly string[]> = new Map()

  constructor(path: string, now: () => number) {
    this.#file = new FollowedFile(path, now)
  }

  /** Returns the addresses of a name. `name` is in lower case. */
  addressesOf(name: string): readonly string[] | undefined {
    if (this.#file.hasChanged()) this.#read()
    return this.#names.get(name)
  }

  /**
   * Reads the file. If there is no file, there are no names. If the file can't be read or has no address,
   * keeps the names that it has, and reads the file at the next check: the process may have no more files to
   * open, or the file is being written or was cut off.
   */
  #read(): void {
    const names = this.#namesNow()
    if (names === undefined) this.#file.checkAgain()
    else this.#names = names
  }

  #namesNow(): ReadonlyMap<string, readonly string[]> | undefined {
    try {
      const names = parseHosts(readFileSync(this.#file.path, 'utf8'))
      return names.size > 0 ? names : undefined
    } catch (error) {
      return codeOf(error) === 'ENOENT' ? new Map() : undefined
    }
  }
}

/**
 * Parses a text in the format of hosts(5): each line has an address and its names. Other lines are ignored.
 */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const alias of aliases) {
      const name = alias.toLowerCase()
      const addresses = names.get(name)
      if (addresses === undefined) names.set(name, [address])
      else if (!addresses.includes(address)) addresses.push(address)
    }
  }
  return names
}
