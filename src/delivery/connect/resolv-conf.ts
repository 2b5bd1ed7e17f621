import { readFileSync } from 'node:fs'

/** Returns true if a file in the format of resolv.conf(5) can be read, and names a DNS server. */
export function namesServer(path: string): boolean {
  try {
    return /^[ \t]*nameserver[ \t]+\S/m.test(readFileSync(path, 'utf8'))
  } catch {
    return false
  }
}
